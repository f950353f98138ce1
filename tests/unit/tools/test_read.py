"""Read: the lines of one text file, numbered."""

import hashlib
import os

import pytest

from handtools import Toolbox, local_workspace
from handtools.core.changes import Node
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.text.token_estimate import estimate_tokens
from handtools.tools.read import MAX_BYTES, MAX_LINE_CHARS, MAX_LINES
from handtools.tools.read import read as read_tool

TOTAL = "(Showing lines {} of 9 total. Use start_line={} to continue reading.)"


async def read(files, **args):
    return await memory_toolbox(files).call("read", args)


@pytest.mark.claim("read.numbered")
async def test_lines_come_numbered_from_one():
    result = await read({"a": b"one\ntwo\n"}, path="a")
    assert result.text == "1\tone\n2\ttwo"
    assert result.details.total_lines == 2


@pytest.mark.parametrize(
    ("args", "shown", "footer"),
    [
        ({"start_line": 3, "end_line": 4}, "3-4", TOTAL.format("3-4", 5)),
        ({"start_line": 0, "limit": 2}, "1-2", TOTAL.format("1-2", 3)),
        ({"start_line": 8}, "8-9", "(Showing lines 8-9 of 9 total.)"),
        ({"end_line": 99}, "1-9", ""),
    ],
)  # fmt: skip
async def test_a_range_is_inclusive_and_the_footer_tells_the_truth(args, shown, footer):
    result = await read({"a": b"".join(b"line %d\n" % n for n in range(1, 10))}, path="a", **args)
    first, last = shown.split("-")
    rows = [row for row in result.text.splitlines() if "\t" in row]
    assert rows[0].split() == [first, "line", first]
    assert rows[-1].split() == [last, "line", last]
    assert result.text.splitlines()[-1] == footer or not footer


@pytest.mark.claim("read.footer")
async def test_a_long_file_stops_at_the_limits_and_says_how_to_go_on():
    many = await read({"a": b"x\n" * (MAX_LINES + 500)}, path="a")
    assert many.details.end_line == MAX_LINES
    assert many.details.clipped
    asked = await read({"a": b"x\n" * (MAX_LINES + 500)}, path="a", limit=MAX_LINES)
    assert not asked.details.clipped
    assert f"Use start_line={MAX_LINES + 1} to continue" in many.text
    wide = await read({"a": (b"y" * 999 + b"\n") * 200}, path="a")
    assert wide.details.end_line == MAX_BYTES // 1000
    assert wide.details.clipped


@pytest.mark.parametrize("start", [1, 123_456])
async def test_a_whole_page_is_not_cut_a_second_time(start):
    line = b"x" * (MAX_BYTES // MAX_LINES - 1) + b"\n"
    files = {"a": b"\n" * (start - 1) + line * (MAX_LINES + 1)}
    page = await read(files, path="a", start_line=start, limit=MAX_LINES)
    assert page.details.end_line == start + MAX_LINES - 1
    assert "Shortened" not in page.text


@pytest.mark.claim("read.long_lines")
async def test_an_overlong_line_is_shortened_and_says_so():
    result = await read({"a": b"z" * (MAX_LINE_CHARS + 5_000) + b"\nnext\n"}, path="a")
    assert len(result.text) < MAX_LINE_CHARS + 200
    assert "5000" in result.text
    assert "next" in result.text


@pytest.mark.parametrize(
    "data", [b"\x00\x01\x02" * 50, bytes(range(1, 32)) * 40, b"\x7fELF\x02\x01\x01\x00" + b"\x00" * 100]
)
async def test_a_binary_file_is_refused_by_its_content(data):
    result = await read({"a.txt": data}, path="a.txt")
    assert result.fault.code == "wrong_kind"
    assert "binary" in result.text


@pytest.mark.parametrize("text", ["Привет, мир\n", "こんにちは世界\n", "العربية\n", "🙂🙃\n"])
async def test_text_in_any_script_is_text(text):
    result = await read({"a": text.encode() * 500}, path="a", limit=1)
    assert text.strip() in result.text


async def test_a_missing_file_suggests_near_names():
    result = await read({"src/settings.py": b"", "src/main.py": b""}, path="src/setings.py")
    assert result.fault.code == "not_found"
    assert "src/settings.py" in result.text
    assert "main" not in result.text


async def test_an_empty_file_says_so():
    assert "empty" in (await read({"a": b""}, path="a")).text


async def test_a_start_past_the_end_names_the_length():
    result = await read({"a": b"1\n2\n"}, path="a", start_line=9)
    assert result.fault.code == "invalid_input"
    assert "2 lines" in result.text


async def test_a_form_feed_is_no_line_end():
    result = await read({"a": b"one\x0cstill one\ntwo\n"}, path="a")
    assert result.details.total_lines == 2


async def test_a_read_is_remembered_for_the_agent_that_made_it():
    box = memory_toolbox({"a": b"seen\n"})
    await box.call("read", {"path": "a"})
    [logged] = box.workspace.journal.calls.page()
    assert (logged.tool, logged.args["path"], logged.status) == ("read", "a", "ok")


CODE = b'''import os

LIMIT = 3


class Store:
    """Holds parts."""

    def load(self, path):
        first = 1
        second = 2
        third = 3
        return first + second + third

    def save(self):
        return LIMIT


def load(path):
    return Store().load(path)
'''


def long_source(functions=400):
    return b"".join(
        b"def function_%d(a, b):\n    x = a\n    y = b\n    z = x + y\n    return z\n\n" % n
        for n in range(functions)
    )


@pytest.mark.claim("read.outline")
async def test_a_long_source_comes_as_an_outline_with_line_ranges():
    result = await read({"a.py": long_source()}, path="a.py")
    assert result.details.view == "outline"
    assert "1-5\tdef function_0(a, b):" in result.text
    assert "2395-2399\tdef function_399(a, b):" in result.text
    assert "return z" not in result.text
    assert result.details.left_out


async def test_a_range_of_a_long_source_is_lines():
    result = await read({"a.py": long_source()}, path="a.py", start_line=7, end_line=8)
    assert result.text.startswith("7\tdef function_1(a, b):\n8\t    x = a\n")


async def test_a_long_source_as_text_is_its_head():
    result = await read({"a.py": long_source()}, path="a.py", view="text")
    assert result.details.view == "text"
    assert result.details.end_line == MAX_LINES


async def test_a_long_file_of_no_known_language_is_its_head():
    result = await read({"a.log": b"x\n" * 3000}, path="a.log")
    assert result.details.end_line == MAX_LINES


async def test_an_outline_too_long_for_the_budget_leaves_out_the_deepest_and_says_so():
    source = b"".join(b"class C%d:\n    def inner(self):\n        pass\n" % n for n in range(700))
    result = await read({"a.py": source}, path="a.py", view="outline", max_tokens=8_000)
    assert "class C699" in result.text
    assert "def inner" not in result.text
    assert "700 deeper or later symbols left out" in result.text


@pytest.mark.claim("read.view_outline")
async def test_the_outline_of_a_short_file_can_be_asked_for():
    result = await read({"a.py": CODE}, path="a.py", view="outline")
    assert "6-16\tclass Store:" in result.text
    assert "9-13\t    def load(self, path):" in result.text
    assert "first = 1" not in result.text


async def test_an_outline_of_broken_code_shows_the_rest_and_says_where_it_broke():
    broken = CODE + b"\n\ndef broken(:\n    ???\n\n\ndef fine():\n    pass\n"
    result = await read({"a.py": broken}, path="a.py", view="outline")
    assert "def fine():" in result.text
    assert "broken near line" in result.text


async def test_an_outline_without_a_grammar_is_refused_with_a_way_out():
    result = await read({"a.xyz": b"text\n"}, path="a.xyz", view="outline")
    assert result.fault.code == "invalid_input"
    assert "start_line" in result.text


@pytest.mark.claim("read.fold")
async def test_a_fold_keeps_the_lines_and_folds_long_bodies():
    result = await read({"a.py": CODE}, path="a.py", view="fold")
    assert "9\t    def load(self, path):\n\t        … 4 lines: 10-13\n" in result.text
    assert "16\t        return LIMIT" in result.text
    assert "first = 1" not in result.text


@pytest.mark.claim("read.target")
@pytest.mark.parametrize(
    ("path", "shown", "hidden"),
    [
        ("a.py:3", "3\tLIMIT = 3", "import os"),
        ("a.py:1-3", "3\tLIMIT = 3", "class Store"),
        ("a.py::Store.save", "15\t    def save(self):\n16\t        return LIMIT\n", "def load"),
        ("a.py::Store", "(Store: lines 6-16 of 20.)", "import os"),
    ],
)
async def test_a_path_may_name_a_part(path, shown, hidden):
    result = await read({"a.py": CODE}, path=path)
    assert shown in result.text
    assert hidden not in result.text
    assert result.details.path == "a.py"


async def test_a_symbol_defined_twice_is_shown_twice():
    result = await read(
        {"a.py": CODE + b"\n\nclass Other:\n    def save(self):\n        pass\n"}, path="a.py::save"
    )
    assert "(Store.save: lines 15-16 of 25.)" in result.text
    assert "(Other.save: lines 24-25 of 25.)" in result.text


async def test_a_missing_symbol_suggests_near_ones():
    result = await read({"a.py": CODE}, path="a.py::Store.lod")
    assert result.fault.code == "not_found"
    assert "Store.load" in result.text


async def test_a_negative_start_is_the_tail():
    result = await read({"a": b"".join(b"%d\n" % n for n in range(1, 101))}, path="a", start_line=-3)
    assert result.text.splitlines() == [
        "98\t98",
        "99\t99",
        "100\t100",
        "(Showing lines 98-100 of 100 total.)",
    ]


@pytest.mark.claim("read.several")
async def test_several_files_and_parts_come_in_one_answer():
    result = await read(
        {"a": b"in a\n", "b.py": CODE}, path="a", also=["b.py:3", "b.py::Store.save", "no"], limit=5
    )
    assert "== a ==\n1\tin a" in result.text
    assert "3\tLIMIT = 3" in result.text
    assert "15\t    def save(self):" in result.text
    assert [part.fault for part in result.details.also] == ["", "", "not_found"]
    assert result.ok


async def test_several_files_share_one_budget():
    files = dict.fromkeys("ab", b"y" * 99 + b"\n") | {"big": (b"y" * 99 + b"\n") * 1000}
    result = await read(files, path="big", also=["a", "b"])
    assert len(result.text) < MAX_BYTES * 1.2
    assert [part.left_out for part in result.details.also] == ["all of it: the result is full"] * 2


@pytest.mark.parametrize("tokens", [100, 500, 5_000])
async def test_an_answer_keeps_to_the_tokens_it_was_given(tokens):
    text = b"some words on a line, with signs: {}()\n" * 3000
    result = await read({"a": text}, path="a", max_tokens=tokens)
    assert estimate_tokens(result.text) <= tokens * 1.1 + 30
    assert result.details.clipped
    assert result.details.left_out.startswith("lines")


@pytest.mark.claim("read.changes")
async def test_changes_are_those_since_the_agent_last_saw_the_file():
    box = memory_toolbox({"a": b"one\ntwo\nthree\n"})
    fresh = await box.call("read", {"path": "a", "view": "changes"})
    assert "not read this file before" in fresh.text
    assert "two" in fresh.text
    same = await box.call("read", {"path": "a", "view": "changes"})
    assert "Unchanged" in same.text
    assert "two" not in same.text
    box.workspace.files._set_node("a", Node("file", b"one\n2\nthree\n"))
    changed = await box.call("read", {"path": "a", "view": "changes"})
    assert "-two\n+2\n" in changed.text


async def test_text_is_never_held_back_unless_the_agent_asks_for_changes():
    box = memory_toolbox({"a": b"one\n"})
    first = await box.call("read", {"path": "a"})
    assert (await box.call("read", {"path": "a"})).text == first.text


@pytest.mark.claim("read.map")
async def test_a_map_has_the_most_referenced_definitions_first_and_is_the_same_every_time():
    files = {
        "core/__init__.py": b"def central_thing(x):\n    return x\n\n\ndef unused_thing():\n    pass\n",
        **{
            f"user{n}.py": b"from core import central_thing\n\n\ndef use():\n    central_thing(1)\n"
            for n in range(5)
        },
    }
    result = await read(files, path=".", view="map")
    rows = result.text.splitlines()
    assert rows[0] == "core/__init__.py"
    assert rows[1] == "1\tdef central_thing(x):"
    assert "unused_thing" in result.text
    assert (await read(dict(reversed(files.items())), path=".", view="map")).text == result.text
    short = await read(files, path=".", view="map", max_tokens=100)
    assert "central_thing" in short.text
    assert estimate_tokens(short.text) <= 150


async def test_a_folder_is_refused_with_what_to_do():
    result = await read({"src/a.py": b""}, path="src")
    assert result.fault.code == "wrong_kind"
    assert "view=map" in result.text


async def test_a_missing_file_names_the_same_name_elsewhere():
    result = await read({"src/deep/settings.py": b"", "other/x.py": b""}, path="other/settings.py")
    assert result.fault.code == "not_found"
    assert "src/deep/settings.py" in result.text


async def test_details_say_encoding_line_ends_and_hash():
    result = await read({"a": "é\r\n".encode("latin-1")}, path="a")
    details = result.details
    assert (details.encoding, details.line_end, details.bytes) == ("cp1252", "crlf", 3)
    assert details.sha256 == hashlib.sha256(b"\xe9\r\n").hexdigest()


async def test_a_name_that_ends_like_a_range_is_still_read():
    result = await read({"log:12": b"inside\n"}, path="log:12")
    assert "inside" in result.text


async def test_what_is_neither_file_nor_folder_is_left_alone_and_a_link_to_nowhere_is_told(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to("nowhere.txt")
    (tmp_path / "folder").mkdir()
    box = Toolbox([read_tool], workspace=local_workspace(tmp_path, state=tmp_path / ".state"))
    pipe = await box.call("read", {"path": "pipe"})
    assert (pipe.fault.code, pipe.fault.hint) == (
        "wrong_kind",
        "Only regular files can be read.",
    )
    dangling = await box.call("read", {"path": "dangling"})
    assert dangling.fault.code == "not_found"
    assert "It is a symlink whose target does not exist." in dangling.fault.hint
    assert "view=map" in (await box.call("read", {"path": "folder"})).fault.hint
    outside = await box.call("read", {"path": "/etc/passwd"})
    assert outside.fault.code == "outside_workspace"
    assert f"The root is `{tmp_path}`." in outside.fault.hint
    await box.aclose()


@pytest.mark.parametrize(
    ("encoding", "end", "known"),
    [("utf-16", "\r\n", "utf-16-le"), ("utf-8", "\r", "utf-8"), ("cp1252", "\n", "cp1252")],
)
async def test_a_text_of_many_megabytes_is_read_in_its_encoding_and_with_its_line_ends(
    encoding, end, known
):
    text = "".join(f"línea {n} of a very long log{end}" for n in range(200_000))
    files = {"big.log": text.encode(encoding)}
    tail = await read(files, path="big.log", start_line=-2)
    rows = [f"{n + 1}\tlínea {n} of a very long log" for n in (199_998, 199_999)]
    assert tail.text.splitlines()[:2] == rows
    assert "(Showing lines 199999-200000 of 200000 total.)" in tail.text
    middle = await read(files, path="big.log", start_line=123_457, limit=1)
    assert "123457\tlínea 123456 of" in middle.text
    details = middle.details
    assert (details.encoding, details.bytes) == (known, len(files["big.log"]))
    assert details.line_end == {"\r\n": "crlf", "\r": "cr", "\n": "lf"}[end]


async def test_the_lines_of_a_large_log_are_numbered_as_a_search_numbers_them():
    files = {"big.log": b"10%\r20%\r100% done\n" * 300_000 + b"the end\n"}
    tail = await read(files, path="big.log", start_line=-1)
    assert "300001\tthe end" in tail.text
    assert tail.details.total_lines == 300_001


async def test_a_line_that_is_too_long_to_hold_says_so_and_a_shorter_one_says_its_length():
    files = {"one": b"x" * (5 << 20), "many": (b"y" * 60_000 + b"\n") * 100}
    assert "[of more than 100,000 bytes]" in (await read(files, path="one")).text
    many = await read(files, path="many", limit=3)
    assert "[58000 chars]" in many.text
    assert "Use start_line=2 to continue" in many.text


@pytest.mark.parametrize(
    "args", [{"path": "a.py::f"}, {"path": "a.py", "view": "fold"}, {"path": "a.py", "view": "changes"}]
)
async def test_overlong_lines_are_clipped_in_every_view(args):
    box = memory_toolbox({"a.py": b"def f():\n    return 1\n"})
    await box.call("read", {"path": "a.py"})
    long = b"def f(): return '" + b"y" * 50_000 + b"'\n"
    box.workspace.files._set_node("a.py", Node("file", long))
    result = await box.call("read", args)
    assert len(result.text) < 2 * MAX_LINE_CHARS
    assert "chars]" in result.text
    box.workspace.files._set_node("a.py", Node("file", long + b"# more\n"))
    assert estimate_tokens((await box.call("read", args | {"max_tokens": 100})).text) <= 100


@pytest.mark.parametrize("view", ["text", "outline", "fold", "auto"])
@pytest.mark.parametrize("tokens", [100, 150, 400])
async def test_what_is_said_about_the_answer_counts_against_its_budget(view, tokens):
    row = b"def function_%d(argument, other):\n    # Words in a row.\n    return argument + %d\n\n"
    source = b"".join(row % (n, n) for n in range(900))
    result = await read({"a.py": source}, path="a.py", view=view, max_tokens=tokens)
    assert estimate_tokens(result.text) <= tokens


async def test_several_parts_together_keep_to_the_budget():
    files = {f"f{n}": b"some words on a line, with signs: {}()\n" * 300 for n in range(6)}
    result = await read(files, path="f0", also=[f"f{n}" for n in range(1, 6)], max_tokens=400)
    assert estimate_tokens(result.text) <= 400
    assert [part.path for part in result.details.also] == [f"f{n}" for n in range(1, 6)]


async def test_a_symbol_that_is_cut_short_is_clipped_and_those_left_out_are_counted():
    source = b"".join(b"def f():\n    x = %d\n    return x + 1\n" % n for n in range(40))
    result = await read({"a.py": source}, path="a.py::f", max_tokens=150)
    assert result.details.clipped
    assert "more symbols of this name left out" in result.text


async def test_what_is_left_out_of_what_was_asked_for_is_in_the_details():
    outline = await read({"a.py": long_source()}, path="a.py")
    assert (outline.details.view, outline.details.clipped) == ("outline", True)
    asked = await read({"a.py": long_source()}, path="a.py", view="outline")
    assert not asked.details.clipped
    files = dict.fromkeys("ab", b"x\n" * MAX_LINES)
    both = await read(files, path="a", also=["b"])
    assert (both.details.clipped, both.details.also[0].clipped) == (False, True)


@pytest.mark.parametrize("view", ["auto", "text", "outline", "fold"])
async def test_a_minified_file_is_read_as_what_it_is(view):
    script = ";".join(f"function f{number}(a){{return a+{number}}}" for number in range(8_000))
    result = await read({"a.min.js": f"/* licence */\n{script}\n".encode()}, path="a.min.js", view=view)
    assert result.text.startswith(f"(Minified: 2 lines, the longest of {len(script) + 1:,} characters;")
    assert result.text.count("function f0(") == 1
    assert estimate_tokens(result.text) < 1_200


async def test_a_long_line_among_many_is_no_minified_file():
    text = "def f():\n    return 1\n\n\n" * 2_000 + f"DATA = '{'x' * 9_000}'\n"
    result = await read({"a.py": text.encode()}, path="a.py", view="text", limit=3)
    assert "Minified" not in result.text


async def test_near_names_are_offered_by_every_tool_that_takes_a_path():
    box = memory_toolbox({"src/settings.py": b"x = 1\n", "src/main.py": b""})
    missing = {"path": "src/setings.py"}
    calls = [
        ("edit", missing | {"old_string": "x", "new_string": "y"}),
        ("multi_edit", missing | {"edits": [{"old_string": "x", "new_string": "y"}]}),
        ("write", missing | {"content": "x", "mode": "overwrite"}),
        ("patch", {"patch": "*** Begin Patch\n*** Update File: src/setings.py\n-x\n+y\n*** End Patch"}),
        ("grep", missing | {"pattern": "x"}),
        ("list", {"path": "sr"}),
    ]
    for tool, args in calls:
        result = await box.call(tool, args)
        assert result.fault.code == "not_found", (tool, result.text)
        assert "Did you mean src" in result.text, (tool, result.text)
