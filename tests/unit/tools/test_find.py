"""Find: files and folders by their names, newest first."""

import os

import anyio
import pytest

from handtools import Toolbox, local_workspace
from handtools.runtime.policy import Policy
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.text.token_estimate import estimate_tokens
from handtools.toolbox import READING
from handtools.tools.find import MAX_FIND_PAGE_PATHS
from handtools.tools.find import find as find_tool

FILES = {
    "src/a.py": b"",
    "src/deep/b.py": b"",
    "src/c.ts": b"",
    "d.tsx": b"",
    "README.md": b"",
    ".hidden/e.py": b"",
}


async def find(files, *, policy=None, **args):
    return await memory_toolbox(files, policy=policy).call("find", args)


def paths(result):
    return sorted(entry.path for entry in result.details.entries)


@pytest.mark.claim("find.glob")
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.{ts,tsx}", ["d.tsx", "src/c.ts"]),
        ("src/*.py", ["src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/deep/b.py"]),
        ("[ab].py", ["src/a.py", "src/deep/b.py"]),
        ("?.ts", ["src/c.ts"]),
    ],
)
async def test_globs_are_as_people_know_them(pattern, expected):
    assert paths(await find(FILES, pattern=pattern)) == expected


@pytest.mark.claim("find.depth")
async def test_a_glob_without_a_slash_matches_at_any_depth():
    assert paths(await find(FILES, pattern="b.py")) == ["src/deep/b.py"]
    assert paths(await find(FILES, pattern="/b.py")) == []


@pytest.mark.claim("find.total")
async def test_the_newest_come_first_and_all_are_counted():
    box = memory_toolbox({f"{n}.txt": b"" for n in range(9)})
    assert (await box.call("write", {"path": "new.txt", "content": "newer"})).ok
    result = await box.call("find", {"pattern": "*.txt", "limit": 2})
    assert result.text.splitlines()[0] == "new.txt"
    assert "Showing 2 of 10 paths, newest first." in result.text
    assert result.details.total == 10
    assert result.details.entries[0].bytes == 5


async def test_pages_follow_each_other_though_files_become_newer():
    box = memory_toolbox({f"{n:02}.txt": b"x" for n in range(30)})
    first = await box.call("find", {"pattern": "*.txt", "limit": 10})
    shown = [entry.path for entry in first.details.entries]
    assert (await box.call("edit", {"path": shown[3], "old_string": "x", "new_string": "y"})).ok
    await box.call("write", {"path": "new.txt", "content": "new"})
    second = await box.call("find", {"pattern": "*.txt", "limit": 100, "cursor": first.details.cursor})
    rest = [entry.path for entry in second.details.entries]
    assert not set(shown) & set(rest)
    assert len(set(shown) | set(rest)) == 30
    assert "newer than the last page" in second.text


@pytest.mark.claim("find.ignored")
async def test_hidden_and_ignored_files_are_found_when_asked_for():
    files = FILES | {".gitignore": b"out/\n", "out/f.py": b""}
    assert paths(await find(files, pattern="*.py")) == ["src/a.py", "src/deep/b.py"]
    assert paths(await find(files, pattern=".hidden/*")) == [".hidden/e.py"]
    every = paths(await find(files, pattern="*.py", include_ignored=True))
    assert every == [".hidden/e.py", "out/f.py", "src/a.py", "src/deep/b.py"]


async def test_an_empty_answer_explains_itself():
    files = {".gitignore": b"out/\n", "out/f.py": b"", "Main.java": b""}
    assert (
        "1 matches among hidden or ignored files (include_ignored), such as out/f.py"
        in (await find(files, pattern="*.py")).text
    )
    assert (
        "if case is ignored (case_sensitive=false), such as Main.java"
        in (await find(files, pattern="main.*")).text
    )


async def test_folders_are_found():
    assert paths(await find(FILES, pattern="*", type="directory")) == ["src", "src/deep"]
    assert "src/deep/" in (await find(FILES, pattern="deep", type="any")).text


async def test_a_path_that_is_no_folder_is_an_error():
    result = await find(FILES, pattern="*", path="README.md")
    assert result.fault.code == "wrong_kind"


@pytest.mark.parametrize("pattern", ["*" * 10_000, "a*" * 5_000 + "b", "**/" * 3_000 + "x", "{a,b}" * 12])
async def test_no_pattern_takes_exponential_time(pattern):
    files = {"a" * 200: b"", "/".join("abcdefghij"): b""}
    result = await find(files, pattern=pattern)
    assert result.ok or result.fault.code == "invalid_input"


async def test_a_glob_that_cannot_be_read_is_refused_with_a_reason():
    result = await find(FILES, pattern="{a,b")
    assert result.fault.code == "invalid_input"
    assert "not closed" in result.text


@pytest.mark.parametrize("pattern", ["*", ".env*", "**/*", "secret/**", "{.env,*.key}"])
@pytest.mark.parametrize("kind", ["file", "directory", "any"])
async def test_private_and_excluded_paths_are_in_no_answer(pattern, kind):
    files = {".env": b"", "a/b.key": b"", "secret/x": b"", ".ssh/config": b"", "ok": b""}
    policy = Policy(excluded=("secret/",))
    result = await find(files, policy=policy, pattern=pattern, type=kind, include_ignored=True)
    assert set(paths(result)) <= {"ok", "a"}


async def test_a_budget_is_kept():
    result = await find({f"some/folder/{n}.txt": b"" for n in range(300)}, pattern="*.txt", max_tokens=200)
    assert 0 < len(result.details.entries) < 60
    assert result.details.next_offset == len(result.details.entries)


async def test_a_folder_that_is_named_is_found_without_what_is_below_it():
    files = {"src/deep/b.py": b"", "lib/src/x.py": b""}
    assert paths(await find(files, pattern="src", type="directory")) == ["lib/src", "src"]
    assert paths(await find(files, pattern="src", type="any")) == ["lib/src", "src"]
    assert paths(await find(files, pattern="src/**", type="any")) == ["src/deep", "src/deep/b.py"]


async def test_an_absolute_pattern_in_the_workspace_is_read_from_the_workspace_on(tmp_path):
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "deep" / "a.py").touch()
    box = Toolbox([find_tool], workspace=local_workspace(tmp_path, state=tmp_path / ".state"))
    for pattern in (f"{tmp_path}/src/**", f"{tmp_path}/**/*.py", f"{tmp_path}/src/deep/a.py", "/src/**"):
        assert paths(await box.call("find", {"pattern": pattern})) == ["src/deep/a.py"], pattern
    elsewhere = await box.call("find", {"pattern": "/somewhere/else/*"})
    assert "relative to the workspace" in elsewhere.text
    await box.aclose()


@pytest.mark.parametrize("pattern", ["../*", "src/../*.py"])
async def test_a_pattern_that_climbs_is_refused(pattern):
    result = await find(FILES, pattern=pattern)
    assert result.fault.code == "invalid_input"
    assert "`..`" in result.text


async def test_a_name_that_is_only_a_part_of_one_is_suggested():
    result = await find({"src/main.py": b"", "src/domain.py": b""}, pattern="main")
    assert "2 match `*main*`, such as " in result.text
    assert result.details.total == 0


async def test_a_page_goes_on_after_the_last_path_though_a_file_of_the_same_age_is_gone(tmp_path):
    for n in range(9):
        (tmp_path / f"f{n}").touch()
        os.utime(tmp_path / f"f{n}", (1_000_000, 1_000_000))
    box = Toolbox(READING, workspace=local_workspace(tmp_path, state=tmp_path.parent / "state"))
    args = {"pattern": "f*", "limit": 3}
    first = await box.call("find", args)
    (tmp_path / "f0").unlink()
    second = await box.call("find", args | {"cursor": first.details.cursor})
    assert [entry.path for entry in second.details.entries] == ["f3", "f4", "f5"]
    assert "newer" not in second.text
    (tmp_path / "f5").unlink()
    third = await box.call("find", args | {"cursor": second.details.cursor})
    assert "Files changed since the last page" in third.text


@pytest.mark.parametrize("tokens", [100, 150, 400])
async def test_the_last_line_counts_against_the_budget(tokens):
    files = {f"some/folder/file_{n}.py": b"" for n in range(99)}
    result = await memory_toolbox(files).call("find", {"pattern": "*", "max_tokens": tokens})
    assert estimate_tokens(result.text) <= tokens


@pytest.mark.claim("find.several")
async def test_several_searches_at_once_answer_as_each_would_alone():
    box = memory_toolbox(FILES)
    globs = ["*.py", "*.ts", "*.md", "none"]
    alone = [paths(await box.call("find", {"pattern": glob})) for glob in globs]
    together = {}

    async def search(glob):
        together[glob] = paths(await box.call("find", {"pattern": glob}))

    async with anyio.create_task_group() as group:
        for glob in globs:
            group.start_soon(search, glob)
    assert [together[glob] for glob in globs] == alone


async def test_a_page_larger_than_the_largest_is_the_largest_one():
    files = {f"{n}": b"" for n in range(MAX_FIND_PAGE_PATHS + 9)}
    page = await find(files, pattern="*", limit=100_000)
    assert len(page.details.entries) == MAX_FIND_PAGE_PATHS
    assert page.details.cursor
