"""The picture of a review is what the command draws."""

import pytest

pytest.importorskip("pty", reason="machine: no pseudo-terminals here")


def test_the_picture_is_what_the_command_draws():
    from tests.docs.review_picture import PICTURE, picture

    assert PICTURE.read_text("utf-8") == picture(), "run `just docs` and commit the picture"


def test_the_picture_fetches_nothing():
    from tests.docs.review_picture import PICTURE

    assert "url(http" not in PICTURE.read_text("utf-8")
