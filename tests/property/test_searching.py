"""Properties of searching: ignore files as ripgrep reads them, and nothing hidden in any answer."""

import os
import string
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import anyio
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from handtools.core.search import SearchPatterns, SearchScope
from handtools.host.search import ripgrep_process
from handtools.host.search.ripgrep_search import RipgrepSearch
from handtools.runtime.policy import Policy
from handtools.testing.memory_files_and_search import MemoryFiles, MemorySearch
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.text.search.glob import GlobPrefilter, GlobSet, PathSelection
from handtools.text.search.hit_rendering import RenderedHit, render_hits
from handtools.toolbox import READING, Toolbox, local_workspace
from handtools.tools.search.result_pages import (
    RecencyCursor,
    cursor_after,
    find_result_page_start,
    parse_cursor,
)

NAMES = st.sampled_from(
    ["a", "b", "build", "x.py", "y.log", ".env", ".hidden", "keep.log", "id_rsa", "c d"]
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
LINES = st.sampled_from(
    ["*.log", "build", "build/", "/a", "a/b", "!keep.log", "**/x.py", "a/**", "*", "!*/", ".*", "b/*.py", "# c",
     "", "\\!x", "x.py ", "!build", "[ab]", "?", "a/*/x.py", "/*", "!/a", "/build/", "y.{log,py}"]
)  # fmt: skip
IGNORES = st.dictionaries(
    st.sampled_from(
        [
            ".gitignore",
            "a/.gitignore",
            "b/.ignore",
            ".ignore",
            "build/.gitignore",
            ".git/info/exclude",
            "a/.git/info/exclude",
            "b/.git/info/exclude",
        ]
    ),
    st.lists(LINES, max_size=4).map("\n".join),
    max_size=3,
)
GLOBS = st.sampled_from(
    [
        "*",
        "**",
        "**/*",
        "*.py",
        ".*",
        ".env",
        "{a,.env}",
        "a/**",
        "[!q]*",
        "!x.py",
        "?*",
        "*.*",
        ".hidden/**",
    ]
)
TREES = st.lists(PATHS, min_size=1, max_size=8)
POLICY = Policy(excluded=("b/", "*.secret", "a/x.py"))
IN_FEW_SECONDS = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)


def everything(paths):
    return paths


def consistent(paths: list[str]) -> dict[str, bytes]:
    """The paths that can be files together: none is a folder of another."""
    kept: dict[str, bytes] = {}
    for path in paths:
        inner = any(path.startswith(f"{other}/") or other.startswith(f"{path}/") for other in kept)
        if not inner:
            kept[path] = b"needle in " + os.fsencode(path) + b" only\n"
    return kept


def tree(paths: list[str], ignores: dict[str, str]) -> dict[str, bytes]:
    return consistent([*ignores, *paths]) | {
        path: text.encode() + b"\nneedle\n" for path, text in ignores.items()
    }


def lay_out(root: Path, files: dict[str, bytes]) -> None:
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)


async def answers(search, glob: str | None, *, hidden: bool, ignored: bool) -> list[object]:
    include = (glob,) if glob else ()
    scope = SearchScope(include=include, hidden=hidden, ignored=ignored)
    hits = await search.hits(SearchPatterns(patterns=("needle",)), scope, most=99, admit=everything)
    files = await search.paths(scope, wanted="file", most=99, admit=everything)
    both = await search.paths(scope, wanted="any", most=99, admit=everything)
    shown = await search.tree(
        SearchScope(hidden=hidden, ignored=ignored), depth=9, most=99, admit=everything
    )
    return [
        [(hit.path, hit.line) for hit in hits.hits],
        sorted(entry.path for entry in files.found),
        sorted(entry.path for entry in both.found),
        paths_of(shown.entries),
        {folder: paths_of(entries) for folder, entries in shown.below.items()},
    ]


def paths_of(entries):
    return [entry.path for entry in entries]


@IN_FEW_SECONDS
@given(TREES, IGNORES, st.none() | GLOBS, st.booleans(), st.booleans())
def test_the_search_in_memory_and_ripgrep_agree_on_any_tree(paths, ignores, glob, hidden, ignored):
    files = tree(paths, ignores)
    with tempfile.TemporaryDirectory() as folder:
        lay_out(Path(folder), files)
        disk = anyio.run(lambda: answers(RipgrepSearch(folder), glob, hidden=hidden, ignored=ignored))
    memory = anyio.run(
        lambda: answers(MemorySearch(MemoryFiles(files)), glob, hidden=hidden, ignored=ignored)
    )
    assert disk == memory


@IN_FEW_SECONDS
@given(TREES, IGNORES, st.booleans())
def test_our_walk_finds_exactly_the_files_that_ripgrep_lists(paths, ignores, hidden):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        lay_out(root, tree(paths, ignores))
        argv = [
            ripgrep_process.find_ripgrep(root).file,
            "--files",
            *ripgrep_process.walk_args(SearchScope(hidden=hidden), root),
        ]
        listed = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=False).stdout
        ours = anyio.run(
            lambda: RipgrepSearch(root).paths(
                SearchScope(hidden=hidden), wanted="any", most=99, admit=everything
            )
        )
    shown = {path for path in listed.splitlines() if ".git" not in path.split("/")}
    assert {entry.path for entry in ours.found if entry.kind == "file"} == shown


@IN_FEW_SECONDS
@given(
    TREES,
    IGNORES,
    GLOBS,
    st.booleans(),
    st.sampled_from(["needle", ".", "", "(?i)NEEDLE", "env|rsa|secret"]),
)
@example([".env", "b/x.py", "a/x.py", "id_rsa"], {".gitignore": "!.env\n!b/"}, "*", True, "needle")
def test_no_answer_holds_a_private_or_excluded_path(paths, ignores, glob, include_ignored, pattern):
    files = tree(paths, ignores)
    forbidden = {path for path in files if POLICY.hides(path)}
    calls = [
        ("grep", {"pattern": pattern or "^", "include": glob, "context": 3}),
        ("grep", {"pattern": "needle", "include": glob, "mode": "files", "limit": 200}),
        ("grep", {"pattern": "needle", "mode": "counts", "limit": 200}),
        ("find", {"pattern": glob}),
        ("find", {"pattern": glob, "type": "any"}),
        ("find", {"pattern": glob, "type": "directory"}),
        ("list", {"depth": 9}),
    ]

    async def ask(box):
        return [await box.call(name, args | {"include_ignored": include_ignored}) for name, args in calls]

    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work"
        lay_out(work, files)
        local = Toolbox(
            READING, workspace=local_workspace(work, state=Path(folder) / "state"), policy=POLICY
        )
        results = anyio.run(ask, local) + anyio.run(
            ask, memory_toolbox(files, tools=READING, policy=POLICY)
        )
        local.workspace.journal.close()
    for result in results:
        told = result.details.model_dump() if result.details else {}
        parts = [part for value in told.values() if isinstance(value, list) for part in value]
        shown = {part["path"]: part.get("kind") for part in parts if isinstance(part, dict)}
        assert not shown.keys() & forbidden
        assert not any(POLICY.hides(f"{path}/") for path, kind in shown.items() if kind == "directory")
        assert not any(f"needle in {path} only" in result.text for path in forbidden)


SORTED_NAMES = st.sampled_from(["a", "a-b", "a.b", "B", "ab", "é", "😀", "\udcff", "\udc80", "a b"])


@settings(IN_FEW_SECONDS, max_examples=25)
@given(
    st.lists(st.lists(SORTED_NAMES, min_size=1, max_size=3).map("/".join), min_size=1, max_size=9),
    st.integers(1, 4),
    st.integers(1, 30),
)
@example(["a/a", "a-b", "a.b/a", "ab", "\udcff", "😀", "é"], 2, 14)
@example(["a/a", "a-b", "a.b/a", "ab", "\udcff", "😀", "é"], 2, 13)
def test_hits_and_counts_are_the_first_in_the_order_of_paths_however_many_there_are(paths, lines, most):
    files = dict.fromkeys(consistent(paths), b"needle\n\n" * lines)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        lay_out(root, files)
        rg = [ripgrep_process.find_ripgrep(root).file, "--sort", "path", "--null"]
        told = subprocess.run([*rg, "-n", "needle", "./"], cwd=root, capture_output=True, check=True).stdout
        search = RipgrepSearch(root)
        asked = SearchPatterns(patterns=("needle",)), SearchScope()
        hits = anyio.run(lambda: search.hits(*asked, most=most, admit=everything))
        counts = anyio.run(lambda: search.tallies(*asked, most=most, admit=everything))
    rows = [row.partition(b"\0") for row in told.splitlines()]
    every = [(os.fsdecode(path)[2:], int(rest.partition(b":")[0])) for path, _, rest in rows]
    of_files = list(Counter(path for path, _ in every).items())
    assert [(hit.path, hit.line) for hit in hits.hits] == every[:most]
    assert [(tally.path, tally.matches) for tally in counts.tallies] == of_files[:most]
    assert (hits.gaps.capped, counts.gaps.capped) == (len(every) > most, len(of_files) > most)


TEXT = st.text(st.sampled_from("abAB.*?/[]{},\\!-~ké"), min_size=1, max_size=8)


@given(
    st.lists(TEXT, max_size=4),
    st.lists(st.text(st.sampled_from("abAB./-~ kéK"), min_size=1, max_size=8), max_size=6),
)
@example(["./a"], ["a"])
@example([".aws/"], ["x/.AWS/y"])
@example(["k"], ["K"])
@example(["[]AA]"], ["A"])
@example(["[!]ab]"], ["x"])
def test_a_screen_lets_nothing_slip_that_a_glob_matches(globs, paths):
    good = []
    for glob in globs:
        try:
            GlobSet([glob], case_sensitive=False)
        except ValueError:
            continue
        good.append(glob)
    suspects = GlobPrefilter(good).possible_matches(paths)
    for path in paths:
        for folder in (False, True):
            if GlobSet(good, case_sensitive=False).matches(path, folder=folder):
                assert path in suspects


@given(st.lists(st.text(string.ascii_lowercase, max_size=3), max_size=60), st.integers(1, 9), st.data())
def test_a_cursor_comes_back_to_its_place_whatever_was_put_before(keys, size, data):
    keys = [f"{number}{key}" for number, key in enumerate(keys)]
    start = data.draw(st.integers(0, len(keys) // size)) * size
    shown = data.draw(st.integers(0, min(size, len(keys) - start)))
    given_cursor = parse_cursor(str(cursor_after(keys, start, size, shown)))
    found = find_result_page_start(given_cursor, keys, size)
    assert not found.moved
    assert found.start + found.shown == start + shown
    added = data.draw(st.lists(st.text(string.ascii_uppercase, min_size=1), max_size=5))
    if start:
        later = find_result_page_start(given_cursor, [*added, *keys], size)
        assert later.start == found.start + len(added)
        assert not later.moved


@given(st.lists(st.integers(0, 20) | st.none(), max_size=40), st.data())
def test_newest_first_goes_on_after_what_was_shown_however_much_is_newer(times, data):
    ordered = sorted((t for t in times if t is not None), reverse=True) + [None] * times.count(None)
    entries = [(f"f{n:02}", None if t is None else float(t)) for n, t in enumerate(ordered)]
    if not entries:
        return
    shown = data.draw(st.integers(1, len(entries)))
    resume = RecencyCursor.parse(str(RecencyCursor.after(entries, shown)))
    assert resume.place(entries) == (shown, True)
    newer = [(f"n{n}", 100.0) for n in range(data.draw(st.integers(0, 5)))]
    gone = data.draw(st.sets(st.sampled_from(entries)))
    now = [*newer, *(entry for entry in entries if entry not in gone)]
    start, sure = resume.place(now)
    assert sure == (entries[shown - 1] not in gone)
    if sure:
        assert now[start:] == [entry for entry in entries[shown:] if entry not in gone]


@given(st.lists(TEXT.filter(lambda t: not t.startswith("!")), max_size=3), st.lists(PATHS, max_size=6))
def test_a_selection_of_many_is_the_selection_of_each(globs, paths):
    try:
        selection = PathSelection(globs)
    except ValueError:
        return
    assert list(selection.filter_selected_paths(paths)) == [path for path in paths if selection.takes(path)]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8, unique=True).map(sorted), st.integers(0, 4))
def test_every_hit_is_cited_once_and_every_line_at_most_once(places, wide):
    citations = [
        RenderedHit(n, f"hit {n}", around={m: f"line {m}" for m in range(max(n - wide, 1), n + wide + 1)})
        for n in places
    ]
    rows = [row for row in render_hits("path", citations).split("\n")[1:] if row != "--"]
    numbers = [int(row.partition(":" if ":" in row else "-")[0]) for row in rows]
    assert numbers == sorted(set(numbers))
    assert [row for row in rows if ":" in row] == [f"{line}:hit {line}" for line in places]
