"""Loose objects, inflated piece by piece."""

import hashlib
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.runtime.policy.git_layout import BadGitObject, loose_object_digest


def digest(*pieces, most=1 << 20):
    return loose_object_digest(pieces, algorithm="sha1", max_bytes=most)


@given(
    content=st.binary(max_size=5_000),
    level=st.integers(0, 9),
    cuts=st.lists(st.integers(0, 6_000), max_size=5),
)
def test_the_digest_is_that_of_the_content_however_it_is_cut_and_packed(content, level, cuts):
    data = zlib.compress(content, level)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[start:end] for start, end in pairwise(edges)]
    expected = hashlib.sha1(content, usedforsecurity=False).hexdigest()
    assert digest(*pieces) == (expected, len(content))


@pytest.mark.parametrize("size", [(1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_content_of_some_megabytes_is_read_whole(size):
    expected = hashlib.sha1(b"x" * size, usedforsecurity=False).hexdigest()
    assert digest(zlib.compress(b"x" * size), most=size) == (expected, size)


def test_a_file_that_inflates_to_more_than_it_may_is_given_up():
    bomb = zlib.compress(bytes(50 << 20))
    with pytest.raises(BadGitObject, match="longer than"):
        digest(bomb, most=4 << 20)


@pytest.mark.parametrize(
    "pieces",
    [
        (),
        (b"",),
        (b"not zlib",),
        (zlib.compress(b"x")[:-1],),
        (zlib.compress(b"x") + b"y",),
        (zlib.compress(b"x"), b"y"),
        (zlib.compress(b"x"), zlib.compress(b"y")),
    ],
)
def test_what_git_would_not_read_as_an_object_is_refused(pieces):
    with pytest.raises(BadGitObject):
        digest(*pieces)
