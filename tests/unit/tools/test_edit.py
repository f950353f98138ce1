"""Edit: replace one exact piece of text in one file."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from handtools import BlockingToolbox
from handtools.testing.fakes import memory_toolbox


async def edit(files, **args):
    box = memory_toolbox(files)
    return await box.call("edit", {"path": "a", **args}), box.workspace.files.files


@pytest.mark.claim("edit.unique")
async def test_text_that_occurs_twice_is_refused_with_its_places_and_replaced_on_demand():
    refused, files = await edit({"a": b"x\ny\nx\n"}, old_string="x", new_string="z")
    assert refused.fault.code == "many_matches"
    assert "1" in refused.text
    assert "3" in refused.text
    assert files["a"] == b"x\ny\nx\n"
    done, files = await edit({"a": b"x\ny\nx\n"}, old_string="x", new_string="z", replace_all=True)
    assert done.details.replaced == 2
    assert files["a"] == b"z\ny\nz\n"


async def test_text_that_is_not_there_is_refused():
    refused, files = await edit({"a": b"x\n"}, old_string="nope", new_string="z")
    assert refused.fault.code == "no_match"
    assert files["a"] == b"x\n"


async def test_the_same_text_twice_is_refused():
    refused, _ = await edit({"a": b"x\n"}, old_string="x", new_string="x")
    assert refused.fault.code == "invalid_input"


@pytest.mark.claim("edit.diff")
async def test_the_answer_shows_the_diff_of_what_was_written():
    done, _ = await edit({"a": b"one\ntwo\nthree\n"}, old_string="two", new_string="2")
    assert "-two\n+2\n" in done.text
    assert done.details.first_changed_line == 2


async def test_a_binary_file_is_refused():
    refused, _ = await edit({"a": b"\x00\x01x"}, old_string="x", new_string="y")
    assert refused.fault.code == "wrong_kind"


async def test_a_dollar_ampersand_is_text():
    done, files = await edit({"a": b"price\n"}, old_string="price", new_string="$& $1 \\1 \\g<0>")
    assert done.ok
    assert files["a"] == b"$& $1 \\1 \\g<0>\n"


PIECES = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.text(max_size=12).map(str.encode),
        st.sampled_from(
            [b"\n", b"\r\n", b"\r", b"\xef\xbb\xbf", "é".encode("latin-1"), "中".encode("gbk"), b"\xff\xfe"]
        ),
    ),
    max_size=12,
).map(b"".join)


@pytest.mark.claim("edit.bytes")
@given(before=PIECES, after=PIECES, new=st.text("abc ÄΩ", min_size=1, max_size=8))
def test_no_byte_outside_the_replaced_text_changes(before, after, new):
    """Whatever the bytes, encodings and line ends around it."""
    data = before + b"<<needle>>" + after
    assume(data.count(b"<<needle>>") == 1)
    box = memory_toolbox({"a": data})
    result = BlockingToolbox(box).call("edit", {"path": "a", "old_string": "<<needle>>", "new_string": new})
    written = box.workspace.files.files["a"]
    if result.ok:
        assert written.startswith(before)
        assert written.endswith(after)
    else:
        assert result.fault.code in {"wrong_kind", "invalid_input", "no_match"}, result.text
        assert written == data
