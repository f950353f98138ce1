"""The moving picture of the README shows what the commands print."""

import re
from html import unescape

import pytest

pytest.importorskip("pty", reason="machine: no pseudo-terminals here")


def test_the_picture_shows_what_the_commands_print_and_nothing_is_cut():
    from tests.docs.moving_picture import PICTURE, WIDTH, picture, session

    lines = session()
    assert [line for _, line in lines].count("app.py") == 2, "once before, once when it is back"
    assert PICTURE.read_text("utf-8") == picture(lines), "run `just docs` and commit the picture"
    longest = max(len(unescape(text)) for text in re.findall(r">([^<]*)</text>", picture(lines)))
    assert longest * 8.43 < WIDTH - 32
