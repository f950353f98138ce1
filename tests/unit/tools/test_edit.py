"""Edit: replace one piece of text in one file."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from handtools import BlockingToolbox, Call, Change, Policy, Reply, Rule
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.tools.editing.drafts import MAX_EDIT_BYTES

INDENTED = b"class A:\n    def run(self):\n        value = compute(1)\n        return value\n"


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
    assert refused.text.startswith("a: ")
    assert files["a"] == b"x\n"


async def test_an_empty_old_string_is_refused_in_a_filled_file_and_the_advice_works():
    refused, files = await edit({"a": b"x\n"}, old_string="", new_string="z")
    assert refused.fault.code == "invalid_input"
    assert "`write` all of it with mode=overwrite" in refused.text
    assert files["a"] == b"x\n"
    box = memory_toolbox({"a": b"x\n"})
    assert (await box.call("write", {"path": "a", "content": "z", "mode": "overwrite"})).ok


@pytest.mark.parametrize("every", [False, True])
async def test_an_empty_old_string_fills_an_empty_file(every):
    done, files = await edit({"a": b""}, old_string="", new_string="x = 1\n", replace_all=every)
    assert done.ok, done.text
    assert done.text.startswith("Replaced 1 in a.\n--- a/a\n+++ b/a\n@@ -0,0 +1 @@\n+x = 1\n")
    assert files["a"] == b"x = 1\n"
    refused, files = await edit(files, old_string="", new_string="x = 1\n")
    assert not refused.ok
    assert files["a"] == b"x = 1\n"


async def test_an_empty_old_string_for_a_missing_file_names_the_tool_that_creates_it():
    refused, _ = await edit({}, old_string="", new_string="x = 1\n")
    assert refused.fault.code == "not_found"
    assert "Create it with `write`." in refused.text


async def test_the_same_text_twice_is_refused():
    refused, _ = await edit({"a": b"x\n"}, old_string="x", new_string="x")
    assert refused.fault.code == "invalid_input"


@pytest.mark.claim("edit.tiers")
async def test_a_slip_that_can_mean_only_one_place_is_understood_and_told():
    done, files = await edit(
        {"a": INDENTED},
        old_string="value = compute(1)\nreturn value",
        new_string="value = compute(2)\nreturn value",
    )
    assert done.ok, done.text
    assert files["a"] == INDENTED.replace(b"(1)", b"(2)")
    assert done.details.tier == "indentation"
    assert "except for indentation" in done.text


@pytest.mark.claim("edit.refusal")
async def test_a_refusal_shows_the_text_to_send_and_sending_it_works():
    stale = "        value = compute(7, 8)\n        return value"
    refused, _ = await edit({"a": INDENTED}, old_string=stale, new_string="        return 0")
    assert refused.fault.code == "no_match"
    fence = refused.text.split("```")[1].strip("\n")
    assert fence.encode() in INDENTED
    done, files = await edit({"a": INDENTED}, old_string=fence, new_string="        return 0")
    assert done.ok
    assert files["a"].endswith(b"def run(self):\n        return 0\n")


@pytest.mark.claim("edit.omission")
async def test_a_note_in_place_of_code_is_refused():
    refused, files = await edit(
        {"a": INDENTED},
        old_string="        return value",
        new_string="        # ... rest of code unchanged",
    )
    assert refused.fault.code == "invalid_input"
    assert files["a"] == INDENTED


@pytest.mark.claim("edit.diff")
async def test_the_answer_shows_the_diff_of_what_was_written():
    done, _ = await edit({"a": b"one\ntwo\nthree\n"}, old_string="two", new_string="2")
    assert "-two\n+2\n" in done.text
    assert done.details.first_changed_line == 2


async def test_the_diff_for_people_is_trimmed_and_the_model_sees_the_real_one():
    done, _ = await edit({"a": b"    one\n    two\n"}, old_string="two", new_string="2")
    assert "-    two" in done.text
    assert "-two" in done.details.diff


async def test_the_description_is_shown_where_a_person_is_asked_and_kept_in_the_record():
    asking = Policy(rules=(Rule("ask", "ask", "A person decides.", effects=frozenset({"change"})),))
    box = memory_toolbox({"a": b"one\n"}, policy=asking)
    args = {"path": "a", "old_string": "one", "new_string": "1", "description": "count in digits"}
    call = Call(tool="edit", args=args)
    pending = await box.call(call)
    assert "count in digits" in pending.request.title
    assert (await box.resume(call.id, Reply(allow=True))).ok
    assert "count in digits" in str(box.workspace.journal.calls.find(call.id))


def someone_else_writes(box, data):
    files = box.workspace.files
    files.perform(files.plan([Change.of("a", before=files.files["a"], after=data)]))


async def test_an_edit_based_on_what_was_read_is_merged_with_what_changed_elsewhere():
    box = memory_toolbox({"a": b"one\ntwo\nthree\nfour\nfive\n"})
    await box.call("read", {"path": "a"})
    someone_else_writes(box, b"one\nTWO\nthree\nfour\nfive\n")
    done = await box.call(
        "edit", {"path": "a", "old_string": "two\nthree\nfour\nfive", "new_string": "two\nthree\nfour\n5"}
    )
    assert done.ok, done.text
    assert done.details.tier == "text as last read"
    assert "changed since you read it" in done.text
    assert box.workspace.files.files["a"] == b"one\nTWO\nthree\nfour\n5\n"


async def test_an_edit_of_lines_that_changed_since_they_were_read_is_stale():
    box = memory_toolbox({"a": b"one\ntwo\nthree\n"})
    await box.call("read", {"path": "a"})
    someone_else_writes(box, b"one\nTWO words\nthree\n")
    refused = await box.call("edit", {"path": "a", "old_string": "two", "new_string": "2"})
    assert refused.fault.code == "stale"
    assert "TWO words" in refused.text
    assert box.workspace.files.files["a"] == b"one\nTWO words\nthree\n"


async def test_a_binary_file_is_refused():
    refused, _ = await edit({"a": b"\x00\x01x"}, old_string="x", new_string="y")
    assert refused.fault.code == "wrong_kind"


async def test_a_file_over_the_limit_is_refused():
    refused, _ = await edit({"a": b"x" * (MAX_EDIT_BYTES + 1)}, old_string="y", new_string="z")
    assert refused.fault.code == "too_large"
    assert f"{MAX_EDIT_BYTES:,}" in refused.text


async def test_what_the_encoding_cannot_hold_is_refused():
    data = "# -*- coding: latin-1 -*-\nname = 'é'\n".encode("latin-1")
    refused, files = await edit({"a": data}, old_string="name", new_string="name✓")
    assert refused.fault.code == "invalid_input"
    assert files["a"] == data


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


async def test_text_that_an_earlier_call_took_out_is_named_with_that_call():
    box = memory_toolbox({"a": b"the first wording of it\nrest of the file\n"})
    args = {"path": "a", "old_string": "the first wording of it", "new_string": "something else entirely"}
    first = Call(tool="edit", args=args)
    assert (await box.call(first)).ok
    await box.call("think", {"thought": "hm"})
    refused = await box.call("edit", args | {"new_string": "a third thing"})
    assert refused.fault.code == "no_match"
    assert f"until edit replaced it (2 calls ago, {first.id})" in refused.text


async def test_the_diff_of_a_file_with_crlf_shows_no_returns():
    done, files = await edit({"a": b"one\r\ntwo\r\n"}, old_string="one", new_string="1")
    assert files["a"] == b"1\r\ntwo\r\n"
    assert "-one\n+1\n two\n" in done.details.diff
    assert (done.details.old_length, done.details.new_length) == (3, 1)
    assert "\r" not in done.text


@pytest.mark.claim("edit.tiers")
@pytest.mark.parametrize("old", ["    def run(self):\n\n\n", "\n\n\n    def run(self):\n"])
async def test_surplus_blank_lines_at_the_ends_are_understood_and_told(old):
    done, files = await edit({"a": INDENTED}, old_string=old, new_string=old.replace("run", "go"))
    assert done.ok, done.text
    assert files["a"] == INDENTED.replace(b"run", b"go")
    assert "except for blank lines" in done.text
