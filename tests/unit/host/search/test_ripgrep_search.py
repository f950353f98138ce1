"""Ripgrep on this machine: processes, hostile patterns, partial answers, a program that is missing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from handtools.core.errors import InvalidInput
from handtools.core.search import SearchGaps, SearchPatterns, SearchScope
from handtools.host.search import ripgrep_process
from handtools.host.search.ripgrep_process import RIPGREP_RECORD_BYTES, RipgrepMissing, SearchFailed
from handtools.host.search.ripgrep_search import RipgrepSearch


def everything(paths):
    return paths


async def hits(search, *patterns, most=100, **options):
    scope = SearchScope(
        **{key: value for key, value in options.items() if key not in {"multiline", "literal"}}
    )
    asked = {key: value for key, value in options.items() if key in {"multiline", "literal"}}
    return await search.hits(SearchPatterns(patterns=patterns, **asked), scope, most=most, admit=everything)


def children() -> set[str]:
    """Processes of ours, living or waiting to be reaped."""
    shown = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "comm="], capture_output=True, text=True
    )
    return {name for name in shown.stdout.split() if name.startswith("rg")}


def fake(folder: Path, script: str) -> Path:
    """A program that stands in for rg."""
    path = folder / "rg"
    folder.mkdir(exist_ok=True)
    (folder / "a").write_text("needle\n")
    path.write_text(f"#!{sys.executable}\n{script}")
    path.chmod(0o755)
    return path


def record(path: str, line: int, text: str) -> str:
    """What rg says of a file and a match in it."""
    where = {"path": {"text": path}}
    place = where | {"lines": {"text": text}, "line_number": line, "submatches": []}
    said = [{"type": "begin", "data": where}, {"type": "match", "data": place}]
    return "\n".join(json.dumps(each, separators=(",", ":")) for each in said)


@pytest.mark.parametrize(
    "pattern", ["--pre=./evil.sh", "--files", "-f/etc/passwd", "--hostname-bin=./evil.sh", "-e", "--", "-"]
)
async def test_a_pattern_is_never_an_option(tmp_path, pattern):
    evil = tmp_path / "evil.sh"
    evil.write_text("#!/bin/sh\ntouch " + str(tmp_path / "executed") + "\ncat\n")
    evil.chmod(0o755)
    (tmp_path / "a.txt").write_text(f"say {pattern} here\n")
    found = await hits(RipgrepSearch(tmp_path), pattern, literal=True, include=("*.txt",))
    assert [hit.path for hit in found.hits] == ["a.txt"]
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("name", ["--pre=x", "-v", "--files"])
async def test_a_path_is_never_an_option(tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "a").write_text("needle\n")
    found = await hits(RipgrepSearch(tmp_path), "needle", root=name)
    assert [hit.path for hit in found.hits] == [f"{name}/a"]


async def test_the_configuration_of_the_user_changes_nothing(tmp_path, monkeypatch):
    config = tmp_path / "config"
    config.write_text("--invert-match\n--hidden\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(config))
    monkeypatch.setenv("HOME", str(tmp_path))
    work = tmp_path / "work"
    work.mkdir()
    (work / "a").write_text("needle\nother\n")
    found = await hits(RipgrepSearch(work), "needle")
    assert [hit.text for hit in found.hits] == ["needle"]


async def test_ignore_files_above_a_workspace_without_git_do_not_count(tmp_path):
    (tmp_path / ".gitignore").write_text("*\n")
    work = tmp_path / "build" / "work"
    work.mkdir(parents=True)
    (work / "a.py").write_text("needle\n")
    search = RipgrepSearch(work)
    assert [hit.path for hit in (await hits(search, "needle")).hits] == ["a.py"]
    assert (await search.paths(SearchScope(), wanted="file", most=9, admit=everything)).total == 1


async def test_a_workspace_inside_a_repository_follows_the_rules_of_the_repository(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*.log\n")
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.log").write_text("needle\n")
    assert not (await hits(RipgrepSearch(work), "needle")).hits


async def test_names_that_are_no_utf_8_are_found_and_can_be_opened(tmp_path):
    name = os.fsdecode(b"caf\xe9.txt")
    (tmp_path / name).write_text("needle\n")
    search = RipgrepSearch(tmp_path)
    assert [hit.path for hit in (await hits(search, "needle")).hits] == [name]
    [entry] = (await search.paths(SearchScope(), wanted="file", most=9, admit=everything)).found
    assert (entry.path, entry.bytes) == (name, 7)


async def test_names_with_line_ends_are_one_name(tmp_path):
    (tmp_path / "a\nb").write_text("needle needle\n")
    search = RipgrepSearch(tmp_path)
    assert [hit.path for hit in (await hits(search, "needle")).hits] == ["a\nb"]
    counted = await search.tallies(
        SearchPatterns(patterns=("needle",)), SearchScope(), most=9, admit=everything
    )
    assert [(tally.path, tally.matches) for tally in counted.tallies] == [("a\nb", 2)]


async def test_places_are_counted_in_characters(tmp_path):
    (tmp_path / "a").write_text("ünïcödé → needle\n")
    [hit] = (await hits(RipgrepSearch(tmp_path), "needle")).hits
    assert hit.text[slice(*hit.spans[0])] == "needle"


async def test_a_record_of_many_megabytes_is_read_past(tmp_path):
    (tmp_path / "a.min.js").write_text("needle" + "x" * (3 * RIPGREP_RECORD_BYTES) + "\nneedle\n")
    first, second = (await hits(RipgrepSearch(tmp_path), "needle")).hits
    assert (first.path, first.line, first.clipped) == ("a.min.js", 1, True)
    assert first.text.startswith("needlexxx")
    assert len(first.text) < RIPGREP_RECORD_BYTES
    assert (second.line, second.text) == (2, "needle")


async def test_a_long_line_is_kept_around_its_match(tmp_path):
    (tmp_path / "a").write_text("x" * 200_000 + "needle" + "y" * 200_000 + "\n")
    [hit] = (await hits(RipgrepSearch(tmp_path), "needle")).hits
    assert hit.clipped
    assert hit.text[slice(*hit.spans[0])] == "needle"
    assert len(hit.text) < 20_000


async def test_a_binary_file_is_passed_by_and_a_late_nul_is_said(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"needle\0" * 10)
    (tmp_path / "b.txt").write_bytes(b"needle\n" + b"x\n" * 100_000 + b"\0needle\n")
    found = await hits(RipgrepSearch(tmp_path), "needle")
    assert [hit.path for hit in found.hits] == ["b.txt"]
    assert found.gaps.binary == 1
    assert not found.gaps.complete


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|aa)+$", r"(.*)*x$", r"(a{1,50}){1,50}b"])
async def test_a_hostile_pattern_ends_in_time(tmp_path, pattern):
    (tmp_path / "a").write_text("a" * 50_000 + "!\n")
    with anyio.fail_after(60):
        await hits(RipgrepSearch(tmp_path), pattern, timeout=10.0)


@pytest.mark.parametrize("pattern", [r"\x00", "x" * 300_000])
async def test_a_pattern_that_is_impossible_or_too_long_is_the_callers_mistake(tmp_path, pattern):
    (tmp_path / "a").write_text("x\n")
    with pytest.raises(InvalidInput):
        await hits(RipgrepSearch(tmp_path), pattern)


async def test_a_binary_file_that_is_named_itself_is_searched_to_its_end(tmp_path):
    (tmp_path / "b.txt").write_bytes(b"needle\n" + b"x\n" * 100_000 + b"\0needle\n")
    found = await hits(RipgrepSearch(tmp_path), "needle", root="b.txt")
    assert len(found.hits) == 2
    assert found.gaps.complete


async def test_a_pattern_that_grows_too_large_is_refused_with_a_reason(tmp_path):
    with pytest.raises(InvalidInput, match="size limit"):
        await hits(RipgrepSearch(tmp_path), "a{1000}{1000}{100}")


@pytest.mark.parametrize("pattern", ["a\0b", "a\ud800"])
async def test_a_pattern_that_no_file_can_hold_is_refused(tmp_path, pattern):
    with pytest.raises(InvalidInput):
        await hits(RipgrepSearch(tmp_path), pattern)


async def test_unreadable_paths_are_skipped_with_one_note(tmp_path):
    said = "import sys\nsys.stderr.write('rg: ./x: Permission denied\\nrg: ./y: Permission denied\\n')\n"
    program = fake(tmp_path, f"{said}print({record('./a', 1, 'needle')!r})\nsys.exit(2)")
    found = await hits(RipgrepSearch(tmp_path, program=program), "needle")
    assert [hit.path for hit in found.hits] == ["a"]
    assert (found.gaps.unreadable, found.gaps.example) == (2, "x: Permission denied")
    assert len(found.gaps.notes) == 1


async def test_time_that_runs_out_gives_what_was_found_and_leaves_no_process(tmp_path):
    script = f"import time\nprint({record('a', 1, 'needle')!r}, flush=True)\ntime.sleep(60)"
    with anyio.fail_after(60):
        found = await hits(RipgrepSearch(tmp_path, program=fake(tmp_path, script)), "needle", timeout=2.0)
    assert [hit.path for hit in found.hits] == ["a"]
    assert found.gaps == SearchGaps(timed_out=True)
    assert not children()


async def test_much_that_is_said_on_the_side_blocks_nothing(tmp_path):
    script = (
        f"import sys\nsys.stderr.write('rg: ./x: no\\n' * 100_000)\nprint({record('a', 1, 'needle')!r})"
    )
    with anyio.fail_after(60):
        found = await hits(RipgrepSearch(tmp_path, program=fake(tmp_path, script)), "n")
    assert len(found.hits) == 1


async def test_a_full_page_kills_the_process_at_once(tmp_path):
    lines = (
        f"import time\nfor n in range(50): print({record('a', 1, 'needle')!r}, flush=True)\ntime.sleep(60)"
    )
    with anyio.fail_after(60):
        found = await hits(RipgrepSearch(tmp_path, program=fake(tmp_path, lines)), "needle", most=20)
    assert (len(found.hits), found.gaps.capped) == (20, True)
    assert not children()


@pytest.mark.parametrize("multiline", [False, True])
async def test_pages_are_the_same_whether_a_search_was_stopped_or_not(tmp_path, multiline):
    for number in range(30):
        (tmp_path / f"d{number % 7}").mkdir(exist_ok=True)
        (tmp_path / f"d{number % 7}" / f"{number}.py").write_text("needle\nneedle(\n  needle)\n\n" * 3)
    search, pattern = RipgrepSearch(tmp_path), r"needle(\(\s+needle)?" if multiline else "needle"
    every = await hits(search, pattern, most=999, multiline=multiline)
    assert not every.gaps.capped
    for most in (1, 7, len(every.hits) - 1, len(every.hits)):
        some = await hits(search, pattern, most=most, multiline=multiline)
        assert some.hits == every.hits[:most]
        assert some.gaps.capped == (most < len(every.hits))


async def test_a_file_full_of_hits_is_not_kept_in_the_memory_of_ripgrep(tmp_path):
    log = tmp_path / "log"
    log.write_text("needle\n" * 3_000_000)
    (tmp_path / "other").write_text("needle\n")
    limited = f"import os, resource, sys\nresource.setrlimit(resource.RLIMIT_AS, ({256 << 20},) * 2)\n"
    real = RipgrepSearch(tmp_path)._program.file
    program = fake(tmp_path / "bin", f"{limited}os.execv({real!r}, sys.argv)")
    found = await hits(RipgrepSearch(tmp_path, program=program), "needle", most=3, exclude=("bin",))
    assert [hit.line for hit in found.hits] == [1, 2, 3]


async def test_cancellation_kills_and_reaps(tmp_path):
    started = tmp_path / "started"
    script = f"import pathlib, time\npathlib.Path({str(started)!r}).touch()\ntime.sleep(60)"
    search = RipgrepSearch(tmp_path, program=fake(tmp_path, script))
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(hits, search, "needle")
            while not started.exists():
                await anyio.sleep(0)
            group.cancel_scope.cancel()
    assert not children()


async def test_a_missing_program_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(ripgrep_process.sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RipgrepMissing, match="pip install ripgrep"):
        await hits(RipgrepSearch(tmp_path), "needle")


async def test_an_old_program_is_refused_as_it_does_not_tell_what_it_reads(tmp_path, monkeypatch):
    old, recent = tmp_path / "old", Path(ripgrep_process.find_ripgrep(tmp_path / "work").name)
    monkeypatch.setattr(sys, "executable", str(old / "python"))
    monkeypatch.setattr(ripgrep_process.sysconfig, "get_path", lambda _: str(old))
    (tmp_path / "work").mkdir()
    old.mkdir()
    (old / "rg").write_text("#!/bin/sh\necho ripgrep 13.0.0\n")
    (old / "rg").chmod(0o755)
    monkeypatch.setenv("PATH", str(recent.parent))
    assert ripgrep_process.find_ripgrep(tmp_path / "work").name == str(recent), (
        "the next one on PATH is taken"
    )
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RipgrepMissing, match="older than ripgrep 14"):
        await hits(RipgrepSearch(tmp_path / "work"), "needle")


async def test_a_program_in_the_workspace_is_never_run(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "elsewhere" / "python"))
    monkeypatch.setattr(ripgrep_process.sysconfig, "get_path", lambda _: str(tmp_path / "elsewhere"))
    work = tmp_path / "work"
    work.mkdir()
    fake(work, f"open({str(tmp_path / 'executed')!r}, 'w')")
    monkeypatch.setenv("PATH", str(work))
    with pytest.raises(RipgrepMissing):
        await hits(RipgrepSearch(work), "needle")
    assert not (tmp_path / "executed").exists()


async def test_temporaries_of_ours_are_not_found(tmp_path):
    (tmp_path / f".handtools-{'0' * 24}").write_text("needle\n")
    search = RipgrepSearch(tmp_path)
    assert not (await hits(search, "needle", hidden=True)).hits
    for wanted in ("file", "any"):
        assert not (
            await search.paths(SearchScope(hidden=True), wanted=wanted, most=9, admit=everything)
        ).total
    assert not (await search.tree(SearchScope(hidden=True), depth=1, most=9, admit=everything)).entries


async def test_newest_paths_come_first_and_what_is_gone_is_left_out(tmp_path):
    for age, name in enumerate(["new", "middle", "old"]):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1_000_000 - age, 1_000_000 - age))
    listed = await RipgrepSearch(tmp_path).paths(SearchScope(), wanted="file", most=2, admit=everything)
    assert [entry.path for entry in listed.found] == ["new", "middle"]
    gone = await RipgrepSearch(tmp_path).paths(
        SearchScope(), wanted="file", most=9, admit=lambda paths: [*paths, "gone"]
    )
    assert [entry.path for entry in gone.found] == ["new", "middle", "old"]


SWAPPED = "import os\nos.rename('d', 'real')\nos.symlink('secret', 'd')\n"
BACK = "os.unlink('d')\nos.rename('real', 'd')\n"
"""What a program may do while rg opens a file by its name."""


def swapping(tmp_path: Path, said: str) -> RipgrepSearch:
    """A search whose rg has read another file than the one it names."""
    for folder, content in (("d", "open\n"), ("secret", "TOKEN\nTOKEN\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f").write_text(content)
    real = RipgrepSearch(tmp_path)._program.file
    script = (
        "import sys\nif any('/proc/self/fd' in each for each in sys.argv):\n"
        f"    import os\n    os.execv({str(real)!r}, sys.argv)\n{SWAPPED}{said}\n{BACK}"
    )
    return RipgrepSearch(tmp_path, program=fake(tmp_path, script))


async def test_a_hit_counts_only_if_it_is_in_the_file_that_was_judged(tmp_path):
    search = swapping(tmp_path, f"print({record('d/f', 1, 'TOKEN')!r}, flush=True)")
    found = await hits(search, "TOKEN")
    assert not found.hits
    assert (found.gaps.unreadable, found.gaps.example) == (1, "d/f: changed during the search")


async def test_a_count_is_of_the_file_that_was_judged(tmp_path):
    search = swapping(tmp_path, r"print('d/f\0002', flush=True)")
    secret = await search.tallies(
        SearchPatterns(patterns=("TOKEN",)), SearchScope(), most=9, admit=everything
    )
    assert not secret.tallies
    public = await search.tallies(
        SearchPatterns(patterns=("open",)), SearchScope(), most=9, admit=everything
    )
    assert [(tally.path, tally.matches) for tally in public.tallies] == [("d/f", 1)]


async def test_names_behind_a_link_that_was_swapped_in_are_not_listed(tmp_path):
    search = swapping(tmp_path, r"print('./d/f\0./d/key\0', end='', flush=True)")
    listed = await search.paths(SearchScope(), wanted="file", most=9, admit=everything)
    assert [entry.path for entry in listed.found] == ["d/f"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
async def test_hits_are_found_again_in_every_encoding(tmp_path, encoding):
    (tmp_path / "a").write_bytes("erste\nnädel needle\n".encode(encoding))
    found = await hits(RipgrepSearch(tmp_path), "needle")
    assert [(hit.path, hit.line) for hit in found.hits] == [("a", 2)]


async def test_a_link_that_leads_out_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text("needle\n")
    work = tmp_path / "work"
    work.mkdir()
    (work / "out").symlink_to(tmp_path)
    (work / "file").symlink_to(tmp_path / "secret")
    search = RipgrepSearch(work)
    assert not (await hits(search, "needle", hidden=True, ignored=True)).hits
    tree = await search.tree(SearchScope(), depth=5, most=99, admit=everything)
    assert [entry.path for entry in tree.entries] == ["file", "out"]
    assert not tree.below


@pytest.mark.parametrize("most", [1, 2, 3, 9])
async def test_sizes_stay_with_their_paths_when_some_are_withheld_or_left_out(tmp_path, most):
    for name in ("d1", "d2", "hidden_folder"):
        (tmp_path / name).mkdir()
    for size, name in enumerate(["a", "b", "hidden", "z"]):
        (tmp_path / name).write_bytes(b"x" * size)
    tree = await RipgrepSearch(tmp_path).tree(
        SearchScope(),
        depth=1,
        most=most,
        admit=lambda paths: [path for path in paths if "hidden" not in path],
    )
    every = [
        ("d1", "folder", None),
        ("d2", "folder", None),
        ("a", "file", 0),
        ("b", "file", 1),
        ("z", "file", 3),
    ]
    assert [(entry.path, entry.kind, entry.bytes) for entry in tree.entries] == every[:most]
    assert tree.left_out == len(every[most:])


async def test_a_file_that_goes_while_it_is_listed_has_no_size(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("12")

    def admit(paths):
        (tmp_path / "a").unlink()
        return paths

    tree = await RipgrepSearch(tmp_path).tree(SearchScope(), depth=1, most=9, admit=admit)
    assert [(entry.path, entry.bytes) for entry in tree.entries] == [("a", None), ("b", 2)]


async def test_a_folder_in_an_inner_repository_has_the_excludes_of_that_one(tmp_path):
    for folder in (tmp_path, tmp_path / "inner"):
        (folder / ".git" / "info").mkdir(parents=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("a\n")
    (tmp_path / "inner" / ".git" / "info" / "exclude").write_text("b\n")
    (tmp_path / "inner" / "deep").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "inner" / "deep" / name).touch()
    tree = await RipgrepSearch(tmp_path).tree(
        SearchScope(root="inner/deep"), depth=1, most=9, admit=everything
    )
    assert list(tree.entries.paths) == ["inner/deep/a", "inner/deep/c"]


async def test_no_character_is_cut_in_two(tmp_path):
    (tmp_path / "a").write_text("x" + "é" * RIPGREP_RECORD_BYTES + "needle\n")
    (tmp_path / "b").write_text("é" * 100_000 + "needle" + "é" * 100_000 + "\n")
    for hit in (await hits(RipgrepSearch(tmp_path), "needle")).hits:
        assert set(hit.text) <= set("xéneedle")


async def test_a_program_that_cannot_be_run_is_a_matter_for_a_person(tmp_path):
    (tmp_path / "rg").write_text("not a program")
    with pytest.raises(SearchFailed, match="Can't run ripgrep"):
        await hits(RipgrepSearch(tmp_path, program=tmp_path / "rg"), "needle")


async def test_a_failure_of_ours_while_reading_leaves_no_process(tmp_path):
    script = f"import time\nprint({record('a', 1, 'needle')!r}, flush=True)\ntime.sleep(60)"
    search = RipgrepSearch(tmp_path, program=fake(tmp_path, script))

    def fail(paths):
        raise ZeroDivisionError

    with anyio.fail_after(60), pytest.raises(ZeroDivisionError):
        await search.hits(SearchPatterns(patterns=("needle",)), SearchScope(), most=9, admit=fail)
    assert not children()


@pytest.mark.parametrize("wanted", ["file", "any"])
async def test_every_way_to_look_follows_the_rules_of_the_repository_around_the_workspace(tmp_path, wanted):
    work = tmp_path / "packages" / "one"
    (work / "sub").mkdir(parents=True)
    (tmp_path / ".git" / "info").mkdir(parents=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("*.mine\n")
    (tmp_path / ".gitignore").write_text("*.log\n/packages/one/gen.py\n/sub/\n")
    (tmp_path / "packages" / ".gitignore").write_text("one/*.tmp\n!keep.log\n")
    for name in ("a.py", "a.log", "keep.log", "b.mine", "gen.py", "c.tmp", "sub/d.py", "sub/e.log"):
        (work / name).touch()
    expected = {".": {"a.py", "keep.log", "sub/d.py"}, "sub": {"sub/d.py"}}
    for root, files in expected.items():
        found = await RipgrepSearch(work).paths(
            SearchScope(root=root), wanted=wanted, most=9, admit=everything
        )
        assert {entry.path for entry in found.found if entry.kind == "file"} == files
    tree = await RipgrepSearch(work).tree(SearchScope(), depth=1, most=9, admit=everything)
    assert [entry.path for entry in tree.entries] == ["sub", "a.py", "keep.log"]
    assert tree.ignored == 4


@pytest.mark.parametrize("wanted", ["file", "any"])
async def test_a_worktree_follows_the_excludes_of_its_repository(tmp_path, wanted):
    git = tmp_path / "main" / ".git"
    (git / "info").mkdir(parents=True)
    (git / "info" / "exclude").write_text("*.mine\n")
    (git / "worktrees" / "w").mkdir(parents=True)
    (git / "worktrees" / "w" / "commondir").write_text("../..\n")
    work = tmp_path / "w"
    work.mkdir()
    (work / ".git").write_text(f"gitdir: {git / 'worktrees' / 'w'}\n")
    (work / "a.py").touch()
    (work / "b.mine").touch()
    found = await RipgrepSearch(work).paths(SearchScope(), wanted=wanted, most=9, admit=everything)
    assert [entry.path for entry in found.found] == ["a.py"]


@pytest.mark.parametrize("git", ["gitdir: nowhere\n", "gitdir: \0\n", "what is this", ""])
async def test_a_git_file_that_leads_nowhere_hides_nothing(tmp_path, git):
    (tmp_path / ".git").write_text(git)
    (tmp_path / "a.py").touch()
    found = await RipgrepSearch(tmp_path).paths(SearchScope(), wanted="any", most=9, admit=everything)
    assert [entry.path for entry in found.found] == ["a.py"]


@pytest.mark.parametrize("git", [True, False])
async def test_rules_of_an_ignore_file_are_not_quoted_and_stop_no_search(tmp_path, git):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a").write_text("needle\n")
    (tmp_path / "prod.key").write_text("[password\n{password\n")
    (tmp_path / ".gitignore").symlink_to("prod.key")
    if git:
        (tmp_path / ".git").mkdir()
    for root in (".", "src"):
        found = await hits(RipgrepSearch(tmp_path), "needle", root=root)
        assert "password" not in repr(found)
        assert "src/a" in repr(found)


@pytest.mark.parametrize(
    "rules", [".gitignore", "deep/.gitignore", "deep/.ignore", ".rgignore", ".git/info/exclude"]
)
async def test_an_ignore_file_that_is_a_link_hides_nothing(tmp_path, rules):
    (tmp_path / ".git/info").mkdir(parents=True)
    (tmp_path / "deep").mkdir()
    (tmp_path / "secret.key").write_text("hunter2\n")
    (tmp_path / rules).symlink_to(tmp_path / "secret.key")
    await both_are_found(tmp_path, rules)


@pytest.mark.parametrize(
    ("rules", "root"), [(".gitignore", "."), (".rgignore", "."), ("deep/.ignore", "deep")]
)
async def test_an_ignore_file_that_is_a_link_hides_nothing_from_a_narrowed_search(tmp_path, rules, root):
    (tmp_path / "deep").mkdir()
    (tmp_path / "secret.key").write_text("hunter2.py\n")
    (tmp_path / rules).symlink_to(tmp_path / "secret.key")
    for name in ("hunter1.py", "hunter2.py"):
        (tmp_path / "deep" / name).write_text("needle\n")
    found = await hits(RipgrepSearch(tmp_path), "needle", root=root, include=("*.py",))
    assert [hit.path for hit in found.hits] == ["deep/hunter1.py", "deep/hunter2.py"]


async def test_an_ignore_file_in_a_folder_that_is_a_link_hides_nothing(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/exclude").write_text("hunter2\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/info").symlink_to(tmp_path / "kept")
    await both_are_found(tmp_path, ".git/info/exclude")


async def both_are_found(root, rules):
    (root / "deep").mkdir(exist_ok=True)
    (root / "deep/hunter1").write_text("needle\n")
    (root / "deep/hunter2").write_text("needle\n")
    search = RipgrepSearch(root)
    found = await hits(search, "needle")
    assert [hit.path for hit in found.hits] == ["deep/hunter1", "deep/hunter2"]
    assert f"{rules}: an ignore file that is a symlink is not followed" in found.gaps.notes[0]
    for wanted in ("file", "any"):
        paths = await search.paths(SearchScope(), wanted=wanted, most=9, admit=everything)
        assert {"deep/hunter1", "deep/hunter2"} <= {entry.path for entry in paths.found}
    counted = await search.tallies(
        SearchPatterns(patterns=("needle",)), SearchScope(), most=9, admit=everything
    )
    assert len(counted.tallies) == 2


async def test_plain_ignore_files_of_another_kind_count_beside_a_link(tmp_path):
    (tmp_path / "rules").write_text("kept\n")
    (tmp_path / ".gitignore").symlink_to("rules")
    (tmp_path / ".ignore").write_text("left\n")
    for name in ("kept", "left"):
        (tmp_path / name).write_text("needle\n")
    assert [hit.path for hit in (await hits(RipgrepSearch(tmp_path), "needle")).hits] == ["kept"]
