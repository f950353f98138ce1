"""The contract of a search: ripgrep over a disk, over a copy of other files, with unsaved text, and in memory."""

from dataclasses import replace

import pytest

from handtools.core.changes import Node
from handtools.core.errors import InvalidInput
from handtools.core.search import SearchPatterns, SearchScope
from handtools.host.files.editor_files import EditorFiles
from handtools.host.files.local_files import LocalFiles
from handtools.host.search.copied_files_search import CopiedFilesSearch
from handtools.host.search.editor_files_search import EditorFilesSearch
from handtools.host.search.ripgrep_search import RipgrepSearch
from handtools.host.search.several_folders_search import local_search
from handtools.testing.memory_files_and_search import MemoryFiles, MemorySearch
from handtools.text.search.gitignore import IGNORE_FILES
from tests.contract.conftest import SavingEditor, lay_out, three_folders

TREE = {
    "a.py": b"import os\nneedle = 1\n",
    "b/c.ts": b"// needle\r\nlet x = needle;\r\n",
    "b/d.txt": b"no such thing\n",
    "b-c/e.py": b"needle\n",
    ".hidden/f.py": b"needle\n",
    "out/g.py": b"needle\n",
    ".gitignore": b"out/\n*.log\n",
    "h.log": b"needle\n",
}


class OneOfSeveral:
    """The search of a workspace of several folders, asked about one of them by the paths in it."""

    def __init__(self, search, name):
        self._search = search
        self._name = name

    async def hits(self, patterns, scope, *, most, admit):
        found = await self._search.hits(patterns, self._whole(scope), most=most, admit=self._admits(admit))
        return replace(found, hits=tuple(hit._replace(path=self._part(hit.path)) for hit in found.hits))

    async def tallies(self, patterns, scope, *, most, admit):
        found = await self._search.tallies(
            patterns, self._whole(scope), most=most, admit=self._admits(admit)
        )
        return replace(
            found, tallies=tuple(replace(each, path=self._part(each.path)) for each in found.tallies)
        )

    async def paths(self, scope, *, wanted, most, admit):
        found = await self._search.paths(
            self._whole(scope), wanted=wanted, most=most, admit=self._admits(admit)
        )
        return replace(
            found, found=tuple(each._replace(path=self._part(each.path)) for each in found.found)
        )

    async def tree(self, scope, *, depth, most, admit):
        found = await self._search.tree(
            self._whole(scope), depth=depth, most=most, admit=self._admits(admit)
        )
        below = {self._part(path): self._listing(listing) for path, listing in found.below.items()}
        return replace(found, entries=self._listing(found.entries), below=below)

    async def find_ignored_paths(self, paths):
        found = await self._search.find_ignored_paths([f"{self._name}/{path}" for path in paths])
        return {self._part(path) for path in found}

    def _listing(self, listing):
        return replace(listing, paths=[self._part(path) for path in listing.paths])

    def _whole(self, scope):
        return replace(scope, root=self._name if scope.root == "." else f"{self._name}/{scope.root}")

    def _part(self, path):
        return path.removeprefix(f"{self._name}/")

    def _admits(self, admit):
        return lambda paths: [
            f"{self._name}/{path}" for path in admit([self._part(path) for path in paths])
        ]


@pytest.fixture(params=["ripgrep", "several", "copied", "editor", "memory"])
def make_search(request, tmp_path, monkeypatch):
    """Build the search of a workspace that holds some files."""

    def make(content):
        if request.param == "memory":
            return MemorySearch(MemoryFiles(content))
        if request.param == "copied":
            return CopiedFilesSearch(MemoryFiles(content), tmp_path)
        if request.param == "several":
            monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
            lay_out(tmp_path / "here", content)
            whole = three_folders(tmp_path / "here", tmp_path / "one", tmp_path / "two")
            return OneOfSeveral(local_search(whole), "here")
        lay_out(tmp_path, content)
        if request.param == "editor":
            return editor_search(tmp_path, content)
        return RipgrepSearch(tmp_path)

    return make


def editor_search(root, content):
    """As if every other file were not saved yet, and something else were on the disk."""
    unsaved = {}
    for path in list(content)[::2]:
        data = content[path] if isinstance(content[path], bytes) else b"\0"
        if (
            not path.endswith(tuple(IGNORE_FILES))
            and b"\0" not in data
            and data.decode("utf-8", "ignore").encode() == data
        ):
            unsaved[path] = data.decode()
            (root / path).write_text("old needle\n" * 3)
    return EditorFilesSearch(EditorFiles(LocalFiles(root), SavingEditor(root, unsaved)), root)


FROM_THE_TOP = pytest.mark.parametrize(
    "make_search", ["ripgrep", "copied", "editor", "memory"], indirect=True
)
"""For globs that are read from the workspace's top too, which is not the folder that is asked about in several."""


def everything(paths):
    return paths


async def found(
    search, *patterns, most=100, admit=everything, literal=False, case=True, multiline=False, **scope
):
    asked = SearchPatterns(patterns=patterns, literal=literal, case_sensitive=case, multiline=multiline)
    return await search.hits(asked, SearchScope(**scope), most=most, admit=admit)


async def places(search, *patterns, **options):
    return [(hit.path, hit.line) for hit in (await found(search, *patterns, **options)).hits]


async def paths(search, *globs, wanted="file", most=100, admit=everything, **scope):
    listed = await search.paths(SearchScope(include=globs, **scope), wanted=wanted, most=most, admit=admit)
    return sorted(entry.path for entry in listed.found)


def flat(tree, entries=None):
    """Each entry, and what is in it where it was looked into."""
    return [
        (e.path, flat(tree, tree.below[e.path]) if e.path in tree.below else None)
        for e in (tree.entries if entries is None else entries)
    ]


async def test_hits_come_in_the_order_of_paths_with_lines_and_places(make_search):
    answer = await found(make_search(TREE), "needle")
    assert [(hit.path, hit.line, hit.text) for hit in answer.hits] == [
        ("a.py", 2, "needle = 1"),
        ("b/c.ts", 1, "// needle"),
        ("b/c.ts", 2, "let x = needle;"),
        ("b-c/e.py", 1, "needle"),
    ]
    assert [hit.text[slice(*span)] for hit in answer.hits for span in hit.spans] == ["needle"] * 4
    assert answer.gaps.complete


async def test_hidden_and_ignored_files_are_found_only_when_asked_for(make_search):
    search = make_search(TREE)
    hidden = await places(search, "needle", hidden=True)
    assert (".hidden/f.py", 1) in hidden
    assert ("out/g.py", 1) not in hidden
    ignored = await places(search, "needle", ignored=True)
    assert {("out/g.py", 1), ("h.log", 1)} <= set(ignored)
    assert (".hidden/f.py", 1) not in ignored


async def test_a_folder_that_is_named_is_searched_even_if_it_is_ignored(make_search):
    search = make_search(TREE | {"out/x.log": b"needle\n", "out/out/y.py": b"needle\n"})
    assert await places(search, "needle", root="out") == [("out/g.py", 1)]
    assert await paths(search, "*", root="out") == ["out/g.py"]


async def test_one_file_can_be_searched(make_search):
    assert await places(make_search(TREE), "needle", root="b/c.ts") == [("b/c.ts", 1), ("b/c.ts", 2)]


async def test_a_search_stops_when_it_has_enough_and_says_so(make_search):
    answer = await found(make_search(TREE), "needle", most=2)
    assert [hit.path for hit in answer.hits] == ["a.py", "b/c.ts"]
    assert answer.gaps.capped
    assert not (await found(make_search(TREE), "needle", most=4)).gaps.capped


async def test_what_is_not_admitted_neither_shows_nor_counts(make_search):
    answer = await found(
        make_search(TREE), "needle", most=2, admit=lambda paths: [p for p in paths if p != "a.py"]
    )
    assert [hit.path for hit in answer.hits] == ["b/c.ts", "b/c.ts"]


async def test_excluded_globs_are_not_entered_in_any_case(make_search):
    assert ("a.py", 2) not in await places(make_search(TREE), "needle", exclude=("A.PY", "b"))
    assert await places(make_search(TREE), "needle", exclude=("A.PY", "b")) == [("b-c/e.py", 1)]


@pytest.mark.parametrize(
    ("globs", "expected"),
    [
        (["*.py"], ["a.py", "b-c/e.py"]),
        (["*.{py,ts}"], ["a.py", "b-c/e.py", "b/c.ts"]),
        (["b/*"], ["b/c.ts", "b/d.txt"]),
        (["b"], ["b/c.ts", "b/d.txt"]),
        (["**/*.ts"], ["b/c.ts"]),
        (["b/**/*.txt"], ["b/d.txt"]),
        (["[ab].py"], ["a.py"]),
        (["!*.py"], ["b/c.ts", "b/d.txt"]),
        (["*.PY"], []),
        (["?.py"], ["a.py", "b-c/e.py"]),
    ],
)
async def test_globs_say_what_is_looked_at(make_search, globs, expected):
    assert await paths(make_search(TREE), *globs) == expected


async def test_globs_can_be_matched_in_any_case(make_search):
    assert await paths(make_search(TREE), "*.PY", case_sensitive=False) == ["a.py", "b-c/e.py"]


@pytest.mark.parametrize("glob", ["*", "**", "**/*", "*.py", "{*,.*}"])
async def test_no_glob_brings_back_what_is_hidden_or_ignored(make_search, glob):
    search = make_search(TREE | {".f.py": b"needle\n"})
    listed = await paths(search, glob)
    hits = [path for path, _ in await places(search, "needle", include=(glob,))]
    for path in [*listed, *hits]:
        assert not path.startswith((".", "out", "h.log")), path


@FROM_THE_TOP
async def test_a_glob_is_read_from_the_folder_searched_or_from_the_workspace(make_search):
    search = make_search({"src/api/x.py": b"", "src/y.py": b""})
    assert await paths(search, "api/*.py", root="src") == ["src/api/x.py"]
    assert await paths(search, "src/api/*.py", root="src") == ["src/api/x.py"]


async def test_several_patterns_are_one_search(make_search):
    assert await places(make_search(TREE), "import", "let x") == [("a.py", 1), ("b/c.ts", 2)]


async def test_a_literal_means_itself(make_search):
    search = make_search({"a": b"f(x)\nfx\n"})
    assert await places(search, "f(x)", literal=True) == [("a", 1)]
    assert await places(search, "f(x)") == [("a", 2)]


async def test_case_is_ignored_when_asked(make_search):
    search = make_search({"a": b"Needle\n"})
    assert await places(search, "needle") == []
    assert await places(search, "needle", case=False) == [("a", 1)]


async def test_a_match_over_lines_is_one_hit_with_all_its_lines(make_search):
    search = make_search({"a": b"zero\none(\n  two)\nthree\n"})
    [hit] = (await found(search, r"one\(\s+two", multiline=True)).hits
    assert (hit.line, hit.end_line, hit.text) == (2, 3, "one(\n  two)")
    assert hit.text[slice(*hit.spans[0])] == "one(\n  two"


async def test_a_pattern_that_cannot_be_read_is_the_callers_mistake(make_search):
    with pytest.raises(InvalidInput, match="Invalid pattern"):
        await found(make_search(TREE), "a(b")


async def test_one_latin_1_line_does_not_fail_the_search(make_search):
    search = make_search({"a.txt": b"caf\xe9 needle\n", "b.txt": "café needle\n".encode()})
    answer = await found(search, "needle")
    assert [(hit.path, hit.text[slice(*hit.spans[0])]) for hit in answer.hits] == [
        ("a.txt", "needle"),
        ("b.txt", "needle"),
    ]


async def test_a_form_feed_is_no_line_end(make_search):
    assert await places(make_search({"a": b"one\x0cone\nneedle\n"}), "needle") == [("a", 2)]


async def test_links_are_not_followed(make_search):
    search = make_search(
        {"real/a.py": b"needle\n", "link": Node("link", b"real"), "l.py": Node("link", b"real/a.py")}
    )
    assert await places(search, "needle") == [("real/a.py", 1)]
    assert await paths(search, "*") == ["real/a.py"]


async def test_files_are_counted(make_search):
    search = make_search(TREE)
    counted = await search.tallies(
        SearchPatterns(patterns=("needle",)), SearchScope(), most=9, admit=everything
    )
    assert [(t.path, t.matches) for t in counted.tallies] == [("a.py", 1), ("b/c.ts", 2), ("b-c/e.py", 1)]
    assert counted.gaps.complete
    fewer = await search.tallies(
        SearchPatterns(patterns=("needle",)), SearchScope(), most=1, admit=everything
    )
    assert (len(fewer.tallies), fewer.gaps.capped) == (1, True)


async def test_folders_are_found(make_search):
    search = make_search(TREE | {"b/deep": Node("folder")})
    assert await paths(search, "*", wanted="folder") == ["b", "b-c", "b/deep"]
    assert await paths(search, "[bd]*", wanted="any") == ["b", "b-c", "b/d.txt", "b/deep"]
    assert await paths(search, "b", wanted="folder") == ["b"]
    assert await paths(search, "b/**", wanted="any") == ["b/c.ts", "b/d.txt", "b/deep"]
    assert await paths(search, "b/", wanted="folder") == ["b"]


async def test_a_lone_carriage_return_ends_a_line_as_it_does_for_readers(make_search):
    search = make_search({"mac.txt": b"one\rneedle two\rthree\ra needle and a needle\r"})
    hits = (await found(search, "needle")).hits
    assert [(hit.line, hit.text, hit.spans) for hit in hits] == [
        (2, "needle two", ((0, 6),)),
        (4, "a needle and a needle", ((2, 8), (15, 21))),
    ]


async def test_the_total_counts_what_is_not_shown(make_search):
    search = make_search({f"{n}.py": b"" for n in range(9)})
    listed = await search.paths(SearchScope(include=("*.py",)), wanted="file", most=2, admit=everything)
    assert (len(listed.found), listed.total) == (2, 9)


async def test_a_tree_has_folders_first_and_leaves_out_what_is_ignored(make_search):
    tree = await make_search(TREE).tree(SearchScope(), depth=2, most=100, admit=everything)
    assert flat(tree) == [
        ("b", [("b/c.ts", None), ("b/d.txt", None)]),
        ("b-c", [("b-c/e.py", None)]),
        ("a.py", None),
    ]
    assert tree.ignored == 4


async def test_a_tree_stops_at_its_limit_upper_levels_first(make_search):
    tree = await make_search(TREE).tree(SearchScope(), depth=3, most=4, admit=everything)
    assert flat(tree) == [("b", [("b/c.ts", None)]), ("b-c", None), ("a.py", None)]
    assert (tree.left_out, tree.unvisited) == (1, 1)


async def test_skipped_names_are_skipped_below_the_root_only(make_search):
    search = make_search({"build/x.py": b"", "build/build/y.py": b"", "src/build/z.py": b"", "src/a": b""})
    scope = SearchScope(skip=frozenset({"build"}))
    assert flat(await search.tree(scope, depth=3, most=9, admit=everything)) == [("src", [("src/a", None)])]
    inside = SearchScope(root="build", skip=frozenset({"build"}))
    assert flat(await search.tree(inside, depth=3, most=9, admit=everything)) == [("build/x.py", None)]


async def test_ignore_files_further_down_win(make_search):
    search = make_search({
        ".gitignore": b"*.log\n/top\n",
        "a/.gitignore": b"!keep.log\nlocal/\n",
        "a/keep.log": b"needle\n",
        "a/other.log": b"needle\n",
        "a/local/x": b"needle\n",
        "a/top": b"needle\n",
        "top": b"needle\n",
        "b/.ignore": b"!other.log\n",
        "b/other.log": b"needle\n",
    })  # fmt: skip
    expected = ["a/keep.log", "a/top", "b/other.log"]
    assert [path for path, _ in await places(search, "needle")] == expected
    assert await paths(search, "*") == expected


@FROM_THE_TOP
@pytest.mark.parametrize("rules", ["!*/", "!.*", "*\n!*/\n!HEAD\n!a.py", "!.git"])
async def test_no_rule_opens_what_a_version_control_keeps_for_itself(make_search, rules):
    files = {
        ".git/HEAD": b"needle\n",
        "sub/.git/HEAD": b"needle\n",
        ".hg/a.py": b"needle\n",
        "a.py": b"needle\n",
    }
    search = make_search(files | {".ignore": rules.encode()})
    for hidden in (False, True):
        scope = SearchScope(hidden=hidden)
        hits = await search.hits(SearchPatterns(patterns=("needle",)), scope, most=9, admit=everything)
        tallies = await search.tallies(
            SearchPatterns(patterns=("needle",)), scope, most=9, admit=everything
        )
        paths = await search.paths(
            SearchScope(hidden=hidden, include=("[!.]*",)), wanted="file", most=9, admit=everything
        )
        assert [hit.path for hit in hits.hits] == ["a.py"]
        assert [tally.path for tally in tallies.tallies] == ["a.py"]
        assert [entry.path for entry in paths.found] == ["a.py"]


async def test_a_repository_inside_another_has_its_own_rules_only(make_search):
    files = {
        ".git/HEAD": b"", ".git/info/exclude": b"*.mine\n", ".gitignore": b"*.log\n", "a.log": b"", "b.mine": b"",
        "sub/.git/HEAD": b"", "sub/.git/info/exclude": b"*.theirs\n", "sub/.gitignore": b"*.bak\n",
        "sub/a.log": b"", "sub/b.mine": b"", "sub/c.theirs": b"", "sub/d.bak": b"", "sub/e.py": b"",
    }  # fmt: skip
    search = make_search(files)
    for root in (".", "sub"):
        for wanted in ("file", "any"):
            found = await search.paths(SearchScope(root=root), wanted=wanted, most=99, admit=everything)
            shown = {entry.path for entry in found.found if entry.kind == "file"}
            assert shown == {"sub/a.log", "sub/b.mine", "sub/e.py"}


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("?.py", {"é.py", "a.py"}),
        ("??.py", {"日本.py"}),
        ("*.ts{,x}", {"b.ts", "c.tsx"}),
        ("{a,é}.{py,ts}", {"a.py", "é.py"}),
        ("*.p?", {"a.py", "é.py", "日本.py"}),
        ("*.*", {"a.py", "é.py", "日本.py", "b.ts", "c.tsx", "d."}),
        ("*.p*", {"a.py", "é.py", "日本.py"}),
    ],
)
async def test_globs_count_characters_and_know_empty_alternatives(make_search, glob, expected):
    search = make_search(dict.fromkeys(["é.py", "a.py", "日本.py", "b.ts", "c.tsx", "d."], b"needle\n"))
    assert set(await paths(search, glob)) == expected
    assert {path for path, *_ in await places(search, "needle", include=(glob,))} == expected


async def test_paths_that_ignore_files_exclude_are_known_also_when_they_are_gone(make_search):
    search = make_search(TREE)
    paths = ["a.py", "out/g.py", "h.log", "out/gone/x", "b/new.log", "b/new.txt", ".gitignore"]
    assert await search.find_ignored_paths(paths) == {"out/g.py", "h.log", "out/gone/x", "b/new.log"}
