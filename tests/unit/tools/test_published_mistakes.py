"""Mistakes that published edit tools make, each by name: ours does the right thing or refuses."""

import pytest

from handtools import Call, Policy, Rule
from handtools.testing.memory_toolbox import memory_toolbox

ASK = Policy(rules=(Rule("ask", "ask", "A person decides.", effects=frozenset({"change"})),))


async def edit(data: bytes, old: str, new: str, **more):
    box = memory_toolbox({"a": data})
    result = await box.call("edit", {"path": "a", "old_string": old, "new_string": new, **more})
    return result, box.workspace.files.files["a"]


async def refused(data: bytes, old: str, new: str, **more):
    result, after = await edit(data, old, new, **more)
    assert result.status == "error", result.text
    assert after == data
    return result


async def done(data: bytes, old: str, new: str, **more) -> bytes:
    result, after = await edit(data, old, new, **more)
    assert result.ok, result.text
    return after


async def test_a_value_that_changed_meanwhile_inside_a_matching_block():
    data = b"func main() {\n\tx := 1\n\ty := 99\n\tz := 3\n\treturn x\n}\n"
    old = "func main() {\n\tx := 1\n\ty := 2\n\tz := 3\n\treturn x\n}"
    result = await refused(data, old, old.replace("z := 3", "z := 4"))
    assert "99" in result.text


async def test_a_sibling_block_with_the_same_first_and_last_line():
    data = b"if (ok) {\n  sendEmail(user, template)\n  log(user)\n}\n"
    await refused(data, "if (ok) {\n  sendSms(user, template)\n  log(user)\n}", "if (ok) {\n  done()\n}")


async def test_siblings_of_equal_shape_where_the_right_one_is_gone():
    data = b"def load_user(id):\n    row = get(id)\n    return User(row)\n"
    old = "def load_team(id):\n    row = get(id)\n    return Team(row)\n"
    await refused(data, old, old.replace("get", "fetch"))


async def test_an_exact_but_ambiguous_match_never_falls_through_to_a_looser_tier():
    block = "run({\n  cmd: 'a',\n  env: {},\n})\n"
    sibling = block.replace("'a'", "'b'")
    data = (block + sibling + block).encode()
    result = await refused(data, block, block.replace("env", "vars"))
    assert result.fault.code == "many_matches"


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("do_reset()\n", "reset() ", "init() "),
        ("timeout = 10\n", "timeout = 1", "timeout = 2"),
        ("timeout = 10\n", "timeout=1", "timeout=2"),
    ],
)
async def test_a_match_inside_a_longer_number_or_an_inexact_one_inside_a_longer_word(text, old, new):
    result, _ = await edit(text.encode(), old, new)
    assert not result.ok


async def test_an_exact_text_inside_a_longer_word_is_replaced_and_the_result_says_where():
    result, after = await edit(b"SECRET_MARKER = 1\n", "SECRET", "PUBLIC")
    assert after == b"PUBLIC_MARKER = 1\n"
    assert "inside a longer word" in result.text
    result, after = await edit(b"total_count = 1\n", "count = 1", "count = 2")
    assert after == b"total_count = 2\n"
    assert "longer word" not in result.text


@pytest.mark.parametrize("new", ["$&", "$$", "$`", "$'", "$1", "\\1", "\\g<0>", "\\n", "{0}", "%s"])
@pytest.mark.parametrize("every", [False, True])
async def test_signs_that_other_languages_expand_in_a_replacement(new, every):
    assert await done(b"price\n", "price", new, replace_all=every) == new.encode() + b"\n"


async def test_whole_file_tab_expansion():
    data = b"all:\n\tcc main.c\n\nclean:\n\trm -f main\n"
    assert await done(data, "cc main.c", "cc -O2 main.c") == data.replace(b"cc ", b"cc -O2 ")


async def test_whole_file_normalisation_of_quotes_and_signs():
    data = "area = “10 m²” — ½ of it\nname = 'x'   \n".encode()
    assert await done(data, "name = 'x'", "name = 'y'") == data.replace(b"'x'", b"'y'")
    after = await done(data, 'area = "10 m²" - ½ of it', 'area = "12 m²" - ½ of it')
    assert after == data.replace(b"10 m", b"12 m")


@pytest.mark.parametrize("old", ["two\nthree", "two\r\nthree"])
async def test_line_ends_of_windows_turned_into_lf_or_doubled(old):
    data = b"one\r\ntwo\r\nthree\r\nfour\r\n"
    after = await done(data, old, old.replace("two", "2") + "\nand more")
    assert after == b"one\r\n2\r\nthree\r\nand more\r\nfour\r\n"


async def test_mixed_line_ends_made_equal():
    data = b"one\r\ntwo\nthree\rfour\n"
    assert await done(data, "two", "2") == b"one\r\n2\nthree\rfour\n"


@pytest.mark.parametrize(
    "bad",
    [
        "é".encode("latin-1"),
        "中文".encode("gbk"),
        "“quoted”".encode("cp1252"),
        "ä".encode()[:1],
        b"\xff\xfe\xfd",
    ],
    ids=["latin-1", "gbk", "cp1252", "truncated", "none"],
)
@pytest.mark.parametrize("utf8", ["", "grün ✓ 中文 "])
async def test_a_byte_of_another_encoding_elsewhere_in_the_file_destroyed(bad, utf8):
    data = b"# " + utf8.encode() + b"\nkeep: " + bad + b"\nname = 1\n"
    assert await done(data, "name = 1", "name = 2") == data.replace(b"= 1", b"= 2")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
async def test_a_byte_order_mark_lost_or_in_the_way_of_the_first_line(encoding):
    data = "first\nsecond\n".encode(encoding)
    assert await done(data, "first\nsecond", "1\nsecond") == "1\nsecond\n".encode(encoding)


async def test_a_created_file_left_empty_after_undo():
    box = memory_toolbox({"kept": b"x"})
    call = Call(tool="write", args={"path": "new/a.py", "content": "one\n"})
    assert (await box.call(call)).ok
    assert (await box.call("undo", {"scope": "call", "name": call.id})).ok
    assert box.workspace.files.files == {"kept": b"x"}
    assert box.workspace.files.facts("new") is None


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("write", {"path": "new/deep/a.py", "content": "one\n"}),
        ("multi_edit", {"edits": [{"path": "new/deep/a.py", "new_string": "one\n"}]}),
        ("patch", {"patch": "*** Begin Patch\n*** Add File: new/deep/a.py\n+one\n*** End Patch"}),
    ],
)
async def test_folders_created_before_consent(tool, args):
    box = memory_toolbox({}, policy=ASK)
    assert (await box.call(tool, args)).status == "pending"
    assert box.workspace.files.facts("new") is None


async def test_old_string_equal_to_new_string():
    assert (await refused(b"x\n", "x", "x")).fault.code == "invalid_input"


async def test_a_missing_edit_among_several_silently_skipped():
    box = memory_toolbox({"a": b"one\n"})
    edits = [{"old_string": "one", "new_string": "1"}, {"old_string": "two", "new_string": "2"}]
    result = await box.call("multi_edit", {"path": "a", "edits": edits})
    assert not result.ok
    assert "Edit 2 of 2" in result.text
    assert box.workspace.files.files["a"] == b"one\n"


async def test_a_hunk_of_added_lines_put_at_the_end_of_the_file():
    box = memory_toolbox({"a": b"import os\n\n\ndef main():\n    pass\n"})
    text = "*** Begin Patch\n*** Update File: a\n@@ import os\n+import re\n*** End Patch"
    assert (await box.call("patch", {"patch": text})).ok
    assert box.workspace.files.files["a"] == b"import os\nimport re\n\n\ndef main():\n    pass\n"


async def test_the_first_of_two_equal_blocks_patched_at_random():
    box = memory_toolbox({"a": b"def a():\n    return 1\n\ndef b():\n    return 1\n"})
    text = "*** Begin Patch\n*** Update File: a\n-    return 1\n+    return 2\n*** End Patch"
    result = await box.call("patch", {"patch": text})
    assert result.fault.code == "many_matches"
    assert box.workspace.files.files["a"].count(b"return 1") == 2


async def test_dedented_text_put_at_the_first_column():
    data = b"class A:\n    def run(self):\n        value = compute(1)\n        return value\n"
    after = await done(
        data, "value = compute(1)\nreturn value", "value = compute(1)\nlog(value)\nreturn value"
    )
    assert after == data.replace(b"        return", b"        log(value)\n        return")


async def test_escaped_text_written_as_it_was_sent():
    data = b'print("a")\nprint("b")\n'
    after = await done(data, 'print(\\"a\\")\\nprint(\\"b\\")', 'print(\\"a\\")\\nprint(\\"c\\")')
    assert after == b'print("a")\nprint("c")\n'


async def test_a_final_line_end_added_or_removed_unasked():
    assert await done(b"one\ntwo", "one", "1") == b"1\ntwo"
    assert await done(b"one\ntwo", "two", "2") == b"one\n2"
    assert await done(b"one\ntwo\n", "two", "2") == b"one\n2\n"
