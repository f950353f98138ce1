"""List: what a folder holds, as paths or as a tree."""

import pytest

from handtools.runtime.policy import Policy
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.toolbox import READING, Toolbox, local_workspace
from handtools.tools.list import BUILD_FOLDERS, MAX_ENTRIES, MAX_LIST_DEPTH

FILES = {"src/b.py": b"123", "src/a.py": b"", "src/Z/z.py": b"", "docs/x.md": b"", "a.txt": b"12345"}


async def listed(files, *, policy=None, **args):
    return await memory_toolbox(files, policy=policy).call("list", args)


def paths(result):
    return [entry.path for entry in result.details.entries]


@pytest.mark.claim("list.order")
@pytest.mark.parametrize("root", [".", ""])
async def test_folders_come_first_each_by_name(root):
    result = await listed(FILES, path=root)
    assert result.text == "docs/\nsrc/\na.txt"
    inside = await listed(FILES, path="src")
    assert inside.text == "src/\n  Z/\n  a.py\n  b.py"
    deep = await listed(FILES, path="./src/", depth=2)
    assert deep.text == "src/\n  Z/\n    z.py\n  a.py\n  b.py"


@pytest.mark.claim("list.tree")
async def test_a_tree_stops_at_its_limit_and_says_what_is_not_shown():
    result = await listed(FILES, depth=3)
    assert result.text == "docs/\n  x.md\nsrc/\n  Z/\n    z.py\n  a.py\n  b.py\na.txt"
    less = await listed(FILES, depth=3, limit=5)
    assert less.text.splitlines()[:5] == ["docs/", "  x.md", "src/", "  Z/", "a.txt"]
    assert "2 more entries are not shown." in less.text
    assert "1 folder was not opened" in less.text
    assert not less.details.complete


@pytest.mark.claim("list.ignored")
@pytest.mark.parametrize("name", sorted(BUILD_FOLDERS))
async def test_build_folders_and_ignored_files_are_left_out_and_counted(name):
    files = {f"{name}/x": b"", ".gitignore": b"*.log\n", "a.log": b"", "b": b""}
    result = await listed(files)
    assert paths(result) == [".gitignore", "b"]
    assert "2 ignored entries are left out" in result.text
    every = await listed(files, include_ignored=True)
    assert paths(every) == [name, ".gitignore", "a.log", "b"]
    assert every.details.complete


async def test_a_file_of_such_a_name_is_left_out_only_where_it_is_hidden(tmp_path):
    files = {"build": b"x", ".coverage": b"x", "env": b"x"}
    work = tmp_path / "work"
    work.mkdir()
    for name, data in files.items():
        (work / name).write_bytes(data)
    disk = Toolbox(READING, workspace=local_workspace(work, state=tmp_path / "state"))
    for result in (await listed(files), await disk.call("list", {})):
        assert paths(result) == ["build", "env"]


@pytest.mark.parametrize("name", ["build", "logs", "tmp"])
async def test_a_folder_of_such_a_name_can_be_listed_itself(name):
    result = await listed({f"{name}/src/x.py": b"", f"{name}/y": b""}, path=name, depth=2)
    assert paths(result) == [f"{name}/src", f"{name}/src/x.py", f"{name}/y"]


async def test_sizes_and_counts_are_in_the_details():
    details = (await listed(FILES, depth=2)).details
    assert (details.folders, details.files, details.bytes) == (3, 4, 8)
    assert {entry.path: entry.entries for entry in details.entries if entry.kind == "directory"} == {
        "docs": 1, "src": 3, "src/Z": None,
    }  # fmt: skip


async def test_a_large_folder_is_listed_page_by_page():
    files = {f"{n:04}": b"" for n in range(MAX_ENTRIES + 200)} | {f"d{n}/x": b"" for n in range(3)}
    box = memory_toolbox(files)
    first = await box.call("list", {})
    assert len(first.details.entries) == MAX_ENTRIES
    second = await box.call("list", {"cursor": first.details.cursor})
    assert len(second.details.entries) == 203
    assert not set(paths(first)) & set(paths(second))
    assert second.details.cursor is None


async def test_a_page_goes_on_after_a_name_that_is_gone():
    box = memory_toolbox({f"{n}": b"" for n in range(6)})
    first = await box.call("list", {"limit": 3})
    assert first.details.cursor == "2"
    second = await box.call("list", {"limit": 3, "cursor": "2.5"})
    assert paths(second) == ["3", "4", "5"]


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_pages_pass_over_no_name_whatever_it_is_made_of(limit):
    names = ["a", "b\udcff", "b\udcfe", "c\nd", "é", "%41", "z"]
    box = memory_toolbox(dict.fromkeys(names, b""))
    seen, cursor = 0, None
    for _ in names:
        page = await box.call("list", {"limit": limit, "cursor": cursor})
        seen += len(page.details.entries)
        cursor = page.details.cursor
        if cursor is None:
            break
        assert cursor.isprintable()
    assert seen == len(names)


async def test_a_cursor_behind_the_last_entry_does_not_call_the_folder_empty():
    page = await memory_toolbox({"a": b"", "b": b""}).call("list", {"cursor": "b"})
    assert page.text == "(No entries after this cursor.)"


async def test_an_empty_folder_says_so():
    assert "empty" in (await listed({".git/x": b""})).text


async def test_a_file_cannot_be_listed():
    assert (await listed(FILES, path="a.txt")).fault.code == "wrong_kind"


async def test_private_and_excluded_entries_are_in_no_answer():
    files = {".env": b"", ".ssh/config": b"", "secret/x": b"", "a/b.key": b"", "ok": b""}
    result = await listed(files, policy=Policy(excluded=("secret/",)), depth=5, include_ignored=True)
    assert paths(result) == ["a", "ok"]


async def test_a_budget_is_kept():
    result = await listed({f"a_long_name_of_a_file_{n}": b"" for n in range(500)}, max_tokens=300)
    assert 0 < len(result.details.entries) < 60
    assert "more entries are not shown" in result.text


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("depth", [1, 2, 3])
async def test_a_tree_that_is_cut_short_goes_on_until_all_of_it_was_shown_once(limit, depth):
    box = memory_toolbox(FILES | {"src/Z/y/deep.py": b"", "src-b/x": b""})
    whole = paths(await box.call("list", {"depth": depth}))
    seen, cursor = [], None
    for _ in range(len(whole) + 1):
        page = await box.call("list", {"depth": depth, "limit": limit, "cursor": cursor})
        seen += paths(page)
        cursor = page.details.cursor
        if cursor is None:
            break
        assert len(page.details.entries) == limit
        assert f"Continue with cursor={cursor}" in page.text
    assert sorted(seen) == sorted(whole)


async def test_a_page_of_a_tree_names_what_is_below_folders_of_earlier_pages_by_their_paths():
    box = memory_toolbox(FILES)
    first = await box.call("list", {"depth": 3, "limit": 3})
    second = await box.call("list", {"depth": 3, "limit": 9, "cursor": first.details.cursor})
    assert second.text == "docs/x.md\nsrc/Z/\n  z.py\nsrc/a.py\nsrc/b.py"


async def test_a_budget_cuts_a_tree_where_a_cursor_can_go_on():
    files = {f"folder_{n}/a_long_name_of_a_file_{m}": b"" for n in range(9) for m in range(20)}
    box = memory_toolbox(files)
    whole, seen, cursor = paths(await box.call("list", {"depth": 2})), [], None
    while True:
        page = await box.call("list", {"depth": 2, "max_tokens": 300, "cursor": cursor})
        seen += paths(page)
        cursor = page.details.cursor
        if cursor is None:
            break
    assert sorted(seen) == sorted(whole)


async def test_one_is_one():
    result = await listed({"build/x": b"", "a/b": b"", "a/c": b"", "d": b""}, depth=2, limit=3)
    assert "1 more entry is not shown." in result.text
    assert "1 ignored entry is left out" in result.text


@pytest.mark.claim("list.known")
@pytest.mark.parametrize(("tool", "args"), [("find", {"pattern": "z.py"}), ("grep", {"pattern": "needle"})])
async def test_what_is_known_is_found_in_one_call_that_a_list_would_not_show(tool, args):
    files = {**FILES, "src/Z/z.py": b"needle\n"}
    assert "src/Z/z.py" not in paths(await listed(files))
    assert "src/Z/z.py" in (await memory_toolbox(files).call(tool, args)).text


async def test_a_tree_deeper_than_the_deepest_and_a_page_larger_than_the_largest_are_those():
    files = {"/".join("abcdefghijklm"): b""} | {f"many/{n}": b"" for n in range(MAX_ENTRIES + 9)}
    assert len((await listed(files, depth=99, path="a")).details.entries) == MAX_LIST_DEPTH
    assert len((await listed(files, path="many", limit=100_000)).details.entries) == MAX_ENTRIES
