"""Grep: lines that match, each with the symbols around it."""

import pytest

from handtools.core.call import Call
from handtools.runtime.policy import Policy
from handtools.runtime.policy.rules import PRIVATE_RULE, Rule
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.text.search.hit_rendering import LINE_CHARS
from handtools.text.token_estimate import estimate_tokens
from handtools.toolbox import READING, Toolbox, local_workspace
from handtools.tools.grep import MAX_GREP_PAGE_HITS, PAGE
from handtools.tools.search import ranked_hits
from handtools.tools.search.ranked_hits import RANKING_BLOCK

CODE = b"""import os


class Server:
    port = 80

    def start(self):
        return listen(self.port)

    def stop(self):
        pass


def listen(port):
    return port
"""


async def grep(files, *, box=None, policy=None, **args):
    box = box or memory_toolbox(files, policy=policy)
    return await box.call("grep", args)


def places(result):
    return [(hit.path, hit.line) for hit in result.details.hits]


@pytest.mark.claim("grep.regex")
async def test_a_regular_expression_is_found():
    result = await grep({"a.py": CODE}, pattern=r"def st\w+")
    assert places(result) == [("a.py", 7), ("a.py", 10)]


@pytest.mark.claim("grep.crumbs")
async def test_every_hit_shows_the_symbols_around_it():
    result = await grep({"a.py": CODE}, pattern="listen", context=0)
    assert result.text.splitlines() == [
        "a.py",
        "[Server 4-11 › start 7-8]",
        "8:        return listen(self.port)",
        "[listen 14-15]",
        "14:def listen(port):",
        "(Showing 2 of 2 matches.)",
    ]
    assert [hit.symbols for hit in result.details.hits] == [["Server", "start"], ["listen"]]


@pytest.mark.claim("grep.order")
async def test_definitions_and_source_come_before_tests_and_vendored_files():
    files = {
        "a/use.py": b"thing()\n",
        "b/tests/test_it.py": b"def thing(): ...\n",
        "c/thing.md": b"thing\n",
        "d/vendor/x.py": b"def thing(): ...\n",
        "e/make.py": b"def thing():\n    pass\n",
        "f/it.min.js": b"function thing(){}\n",
    }
    result = await grep(files, pattern="thing")
    assert [path for path, _ in places(result)] == [
        "e/make.py", "a/use.py", "b/tests/test_it.py", "c/thing.md", "d/vendor/x.py", "f/it.min.js",
    ]  # fmt: skip


@pytest.mark.claim("grep.footer")
async def test_pages_follow_each_other_without_gap_or_repetition():
    files = {f"f{n:02}.py": b"".join(b"x = %d\n" % (k) for k in range(7)) for n in range(33)}
    box = memory_toolbox(files)
    seen, cursor = [], None
    for _ in range(40):
        page = await box.call("grep", {"pattern": "x =", "cursor": cursor})
        seen += places(page)
        cursor = page.details.cursor
        if cursor is None:
            break
        assert len(page.details.hits) == PAGE or len(seen) % RANKING_BLOCK == 0
    assert sorted(seen) == sorted((path, line) for path in files for line in range(1, 8))
    assert len(seen) == len(set(seen)) == 231
    assert "(Showing 221-231 of 231 matches.)" in page.text


async def test_a_page_larger_than_the_largest_is_the_largest_one():
    files = {"a.txt": b"".join(b"hit %d\n" % n for n in range(MAX_GREP_PAGE_HITS + 9))}
    page = await grep(files, pattern="hit", limit=10_000, context=0)
    assert len(page.details.hits) == MAX_GREP_PAGE_HITS
    assert page.details.cursor
    assert (await grep(files, pattern="hit 7$", context=10_000)).ok


async def test_offsets_count_hits_however_they_are_shown():
    files = {"a.py": b"".join(b"hit %d\n" % n for n in range(60))}
    pages = [await grep(files, pattern="hit", offset=offset, context=5) for offset in (0, 20, 40)]
    lines = [line for page in pages for _, line in places(page)]
    assert lines == list(range(1, 61))


async def test_a_search_that_stopped_says_that_there_is_more():
    result = await grep({"a": b"x\n" * (RANKING_BLOCK + 1)}, pattern="x")
    assert f"Showing {PAGE} of more than {RANKING_BLOCK} matches." in result.text
    assert result.details.total is None
    assert not result.details.complete


async def test_a_page_survives_hits_that_were_added_before_it():
    files = {f"f{n:03}": b"x\n" for n in range(2 * RANKING_BLOCK)}
    box = memory_toolbox(files)
    args = {"pattern": "x", "limit": RANKING_BLOCK}
    first = await box.call("grep", args)
    await box.call("write", {"path": "a0", "content": "x\n"})
    assert (await box.call("edit", {"path": "f005", "old_string": "x", "new_string": "y\nx"})).ok
    second = await box.call("grep", args | {"cursor": first.details.cursor})
    assert places(second) == [(f"f{n:03}", 1) for n in range(RANKING_BLOCK, 2 * RANKING_BLOCK)]
    assert "changed" not in second.text


async def test_a_page_out_of_a_block_that_changed_says_so():
    box = memory_toolbox({f"f{n:02}": b"x\n" for n in range(50)})
    first = await box.call("grep", {"pattern": "x"})
    assert (await box.call("edit", {"path": "f01", "old_string": "x", "new_string": "y"})).ok
    second = await box.call("grep", {"pattern": "x", "cursor": first.details.cursor})
    assert "Files changed since the last page" in second.text


async def test_text_that_is_no_cursor_is_refused():
    result = await grep({"a": b"x\n"}, pattern="x", cursor="page 2")
    assert result.fault.code == "invalid_input"
    assert "cursor" in result.text


async def test_an_offset_past_the_end_says_how_many_there_are():
    result = await grep({"a": b"x\nx\n"}, pattern="x", offset=5)
    assert "only 2 matches" in result.text


@pytest.mark.claim("grep.ignored")
async def test_an_empty_answer_explains_itself():
    files = {".gitignore": b"out/\n", "out/a.py": b"needle\n" * 14, "b.py": b"Needle\n", ".h/c": b"other\n"}
    result = await grep(files, pattern="needle")
    assert "No matches." in result.text
    assert "14 in hidden or ignored files (include_ignored)" in result.text
    assert "1 when case is ignored" in result.text
    assert result.details.total == 0
    found = await grep(files, pattern="needle", include_ignored=True)
    assert found.details.total == 14


async def test_a_second_search_that_had_no_time_is_not_taken_for_an_empty_one(tmp_path, monkeypatch):
    monkeypatch.setattr(ranked_hits, "EMPTY_RESULT_PROBE_SECONDS", 0.0)
    (tmp_path / "a.txt").write_text("other\n")
    box = Toolbox(READING, workspace=local_workspace(tmp_path, state=tmp_path.parent / "state"))
    result = await box.call("grep", {"pattern": "needle"})
    assert "some in hidden or ignored files (include_ignored): that search timed out" in result.text


async def test_an_include_that_left_everything_out_is_named():
    result = await grep({"a.py": b"needle\n"}, pattern="needle", include="*.ts")
    assert "1 outside `include`" in result.text


@pytest.mark.claim("grep.grown")
async def test_very_few_hits_come_with_lines_around_them():
    lines = b"".join(b"line %d\n" % n for n in range(1, 101))
    one = await grep({"a": lines}, pattern="line 50$")
    assert one.text.splitlines()[1] == "30-line 30"
    assert "50:line 50" in one.text
    many = await grep({"a": lines}, pattern="line [1-9]$")
    assert "-line" not in many.text
    none = await grep({"a": lines}, pattern="line 50$", context=0)
    assert "49" not in none.text


async def test_context_is_of_the_file_of_the_hit():
    files = {"a": b"before a\nhit\nafter a\n", "b": b"before b\nhit\nafter b\n"}
    result = await grep(files, pattern="hit", context=1)
    assert result.text.splitlines()[:8] == [
        "a", "1-before a", "2:hit", "3-after a", "b", "1-before b", "2:hit", "3-after b",
    ]  # fmt: skip


async def test_surroundings_that_overlap_are_shown_once_and_hits_stay_hits():
    result = await grep({"a": b"1\nhit\n3\nhit\n5\n6\n7\n8\nhit\n"}, pattern="hit", context=1)
    rows = result.text.splitlines()[1:-1]
    assert rows == ["1-1", "2:hit", "3-3", "4:hit", "5-5", "--", "8-8", "9:hit"]


@pytest.mark.claim("grep.clipped")
async def test_a_long_line_is_cut_around_the_match():
    result = await grep({"a.js": b"x" * 5_000 + b"needle" + b"y" * 5_000 + b"\n"}, pattern="needle")
    assert "needle" in result.text
    assert len(result.text) < LINE_CHARS + 200


@pytest.mark.claim("grep.several")
async def test_several_patterns_are_found_in_one_call():
    result = await grep({"a.py": CODE}, pattern=["class ", "import "])
    assert places(result) == [("a.py", 1), ("a.py", 4)]


@pytest.mark.claim("grep.kind")
@pytest.mark.parametrize(
    ("kind", "lines"),
    [("definition", [2]), ("call", [3]), ("import", [1]), ("comment", [4]), ("string", [5])],
)
async def test_hits_can_be_kept_by_what_they_are(kind, lines):
    code = b"import thing\ndef thing(): pass\nthing()\n# thing\nx = 'thing'\n"
    result = await grep({"a.py": code, "b.txt": b"thing\n"}, pattern="thing", kind=kind)
    assert places(result) == [("a.py", line) for line in lines]


@pytest.mark.claim("grep.structure")
async def test_code_is_matched_by_its_shape():
    code = b"open('a')\nopen(\n    'b',\n    'w',\n)\nreopen('c')\n# open('d')\n"
    result = await grep({"a.py": code}, pattern="open($FILE, $$$)", syntax="structure", context=0)
    assert places(result) == [("a.py", 2)]
    assert "4:    'w'," in result.text


async def test_a_structural_pattern_without_a_word_is_refused():
    result = await grep({"a.py": CODE}, pattern="$A($B)", syntax="structure")
    assert result.fault.code == "invalid_input"


async def test_files_and_counts():
    files = {"a.py": b"x\n", "b.py": b"x x\nx\n", "tests/test_c.py": b"x\n"}
    listed = await grep(files, pattern="x", mode="files")
    assert listed.text.splitlines()[:3] == ["a.py", "b.py", "tests/test_c.py"]
    counted = await grep(files, pattern="x", mode="counts")
    assert counted.text.splitlines()[0] == "b.py:3"
    assert "Showing 3 of 3 files with 5 matches." in counted.text
    assert counted.details.total == 5


async def test_a_budget_is_kept_and_the_next_page_goes_on_where_it_ended():
    files = {"a.py": b"".join(b"hit number %d\n" % n for n in range(18))}
    box = memory_toolbox(files)
    first = await box.call("grep", {"pattern": "hit", "max_tokens": 100})
    assert estimate_tokens(first.text) < 150
    shown = len(first.details.hits)
    assert 0 < shown < 18
    second = await box.call("grep", {"pattern": "hit", "cursor": first.details.cursor})
    assert [line for _, line in places(first) + places(second)] == list(range(1, 19))


@pytest.mark.parametrize(
    "args", [{}, {"include_ignored": True}, {"include": "*"}, {"include": ".env*"}, {"path": "sub"}]
)
async def test_private_and_excluded_files_are_in_no_answer(args):
    files = {
        ".env": b"needle\n", "sub/.env.local": b"needle\n", "sub/id_rsa": b"needle\n", "secret/a.py": b"needle\n",
        ".ssh/config": b"needle\n", "sub/.env.example": b"ok needle\n", "sub/x.PEM": b"needle\n",
    }  # fmt: skip
    policy = Policy(excluded=("secret/",))
    for mode in ("content", "files", "counts"):
        result = await grep(files, policy=policy, pattern="needle", mode=mode, **args)
        paths = {path for path, _ in places(result)} | {file.path for file in result.details.files}
        assert paths <= {"sub/.env.example"}
        for name in ("secret", "id_rsa", "PEM", ".ssh", ".env.local"):
            assert name not in result.text


async def test_a_private_file_that_is_named_is_refused():
    result = await grep({".env": b"needle\n"}, pattern="needle", path=".env")
    assert result.status == "denied"


async def test_paths_that_need_a_yes_are_left_out_and_counted():
    rule = Rule("careful", "ask", "Ask first.", effects=frozenset({"read"}), paths=("plans/",))
    policy = Policy(rules=(PRIVATE_RULE, rule))
    result = await grep({"plans/a": b"x\n", "b": b"x\n"}, policy=policy, pattern="x")
    assert places(result) == [("b", 1)]
    assert "1 path needs the user's approval by name: left out." in result.text
    assert not result.details.complete


async def test_a_missing_path_is_named():
    result = await grep({"a": b""}, pattern="x", path="nowhere")
    assert result.fault.code == "not_found"
    assert "nowhere" in result.text


async def test_the_same_search_gives_the_same_answer():
    files = {f"{n}/f{n}.py": b"def thing(): pass\nthing()\n" for n in range(30)}
    results = [await grep(files, pattern="thing") for _ in range(3)]
    assert len(places(results[0])) == PAGE
    assert len({result.text for result in results}) == 1


async def test_a_search_is_not_a_read_of_the_whole_file():
    box = memory_toolbox({"a.py": CODE})
    assert (await box.call("grep", {"pattern": "listen"})).ok
    entries = box.workspace.journal.entries
    assert entries.seen_bytes(Call(tool="read", args={}), "a.py") is None
    await box.call("read", {"path": "a.py"})
    assert entries.seen_bytes(Call(tool="read", args={}), "a.py") == CODE


@pytest.mark.parametrize("pattern", ["def open(", "open($FILE", "class {"])
async def test_a_structural_pattern_that_is_no_code_is_refused(pattern):
    result = await grep({"a.py": b"open(1)\nclass A: pass\n"}, pattern=pattern, syntax="structure")
    assert result.fault.code == "invalid_input"
    assert "not valid python code" in result.text


async def test_a_structural_pattern_is_judged_by_the_languages_in_which_it_is_code():
    files = {"a.py": b"x = open(1)\n", "b.ts": b"const f = (open) => open(1)\n"}
    result = await grep(files, pattern="($A) => open($B)", syntax="structure")
    assert places(result) == [("b.ts", 1)]


async def test_a_refusal_is_made_of_sentences():
    refused = await grep({"a": b"x\n"}, pattern="(")
    assert f"{refused.fault.message} {refused.fault.hint}" in refused.text
    assert refused.fault.message.endswith(".")


async def test_a_page_after_the_last_hit_says_how_many_there_are():
    assert "There is only 1 match." in (await grep({"a": b"x\n"}, pattern="x", offset=5)).text


async def test_lines_are_numbered_as_read_numbers_them():
    files = {"mac.txt": b"one\rneedle\rthree\rfour\r"}
    assert places(await grep(files, pattern="needle")) == [("mac.txt", 2)]
    shown = await memory_toolbox(files).call("read", {"path": "mac.txt", "start_line": 2, "limit": 1})
    assert "2\tneedle" in shown.text


@pytest.mark.parametrize(
    "args", [{"syntax": "structure", "pattern": "open($$$)"}, {"kind": "call", "pattern": "open"}]
)
@pytest.mark.parametrize("mode", ["files", "counts"])
async def test_files_are_counted_by_what_the_parser_says_too(args, mode):
    files = {"a.py": b"open(1)\nopen(2)\n# open\n", "b.py": b"# open(3)\n"}
    result = await grep(files, mode=mode, **args)
    assert [(file.path, file.matches) for file in result.details.files] == [("a.py", 2)]
    assert "Showing 1 of 1 file with 2 matches." in result.text


@pytest.mark.parametrize("mode", ["files", "counts"])
async def test_pages_of_files_keep_to_a_budget_and_go_on_where_they_ended(mode):
    files = {f"some/folder/file{n:03}.py": b"x\n" * (n % 7 + 1) for n in range(150)}
    box = memory_toolbox(files)
    seen, cursor = [], None
    for _ in range(60):
        args = {"pattern": "x", "mode": mode, "limit": 200, "max_tokens": 150, "cursor": cursor}
        page = await box.call("grep", args)
        assert estimate_tokens(page.text) <= 150
        seen += [file.path for file in page.details.files]
        cursor = page.details.cursor
        if cursor is None:
            break
    assert sorted(seen) == sorted(files)


async def test_a_page_of_files_says_when_files_changed_and_when_there_are_no_more():
    box = memory_toolbox({f"f{n}": b"x\n" for n in range(9)})
    first = await box.call("grep", {"pattern": "x", "mode": "files", "limit": 3})
    await box.call("write", {"path": "a", "content": "x\n"})
    args = {"pattern": "x", "mode": "files"}
    second = await box.call("grep", args | {"cursor": first.details.cursor})
    assert "Files changed since the last page" in second.text
    assert "There are only 10 files." in (await box.call("grep", args | {"offset": 10})).text


async def test_pages_of_any_size_follow_each_other_without_gap_or_repetition():
    files = {f"{'tests/' * (n % 2)}f{n:03}.py": b"x = 1\nx = 1\ndef x(): 2\n" for n in range(150)}
    box = memory_toolbox(files)
    seen, cursor = [], None
    for limit in (7, 162, 20, 200, 1, 120):
        page = await box.call("grep", {"pattern": "x", "limit": limit, "cursor": cursor})
        assert len(page.details.hits) == min(limit, 450 - len(seen))
        assert "changed" not in page.text
        seen += places(page)
        cursor = page.details.cursor
    assert cursor is None
    assert sorted(seen) == sorted((path, line) for path in files for line in (1, 2, 3))


async def test_a_page_goes_on_in_lines_that_are_all_alike_though_hits_were_added_before_them():
    box = memory_toolbox({"log.txt": b"x\n" * 250})
    first = await box.call("grep", {"pattern": "x", "limit": 100})
    await box.call("write", {"path": "a.txt", "content": "x\n" * 5})
    second = await box.call("grep", {"pattern": "x", "limit": 100, "cursor": first.details.cursor})
    assert places(second) == [("log.txt", line) for line in range(101, 201)]


async def test_matches_of_another_kind_explain_an_empty_answer():
    result = await grep({"a.py": b"text = 'open sesame'\n"}, pattern="sesame", kind="definition")
    assert result.text == "No matches. There is 1 that the parser does not classify as a definition (kind)."


async def test_what_was_not_parsed_is_said(monkeypatch):
    monkeypatch.setattr("handtools.tools.search.ranked_hits.MAX_PARSED_HITS", 3)
    monkeypatch.setattr("handtools.tools.search.ranked_hits.MAX_PARSED_FILES", 2)
    files = {f"{n}.py": b"open(1)\n" for n in range(5)}
    by_kind = await grep(files, pattern="open", kind="call")
    assert "Showing 3 of 3 matches. Only the first 3 matches were parsed." in by_kind.text
    by_shape = await grep(files, pattern="open($A)", syntax="structure")
    assert "Only the first 2 files with `open` were parsed." in by_shape.text
    for result in (by_kind, by_shape):
        assert result.details.cursor is None
        assert not result.details.complete


async def test_a_file_that_is_too_large_for_the_parser_is_counted():
    files = {"a.py": b"open(1)\n", "big.py": b"open(2)\n" + b"#\n" * (3 << 20)}
    for args in ({"pattern": "open", "kind": "call"}, {"pattern": "open($A)", "syntax": "structure"}):
        result = await grep(files, **args)
        assert places(result) == [("a.py", 1)]
        assert "1 file that may match was not parsed" in result.text
        assert not result.details.complete


@pytest.mark.parametrize("tokens", [100, 140, 300])
async def test_the_last_line_counts_against_the_budget(tokens):
    files = {f"folder/file{n}.py": b"class A:\n    def f(self):\n        hit = 1\n" for n in range(40)}
    result = await grep(files, pattern="hit", max_tokens=tokens, limit=40)
    assert estimate_tokens(result.text) <= tokens


async def test_of_a_line_that_is_not_there_as_a_whole_no_length_is_told(tmp_path):
    (tmp_path / "a.txt").write_text("x" * 200_000 + "needle" + "y" * 200_000 + "\n")
    box = Toolbox(READING, workspace=local_workspace(tmp_path, state=tmp_path.parent / "state"))
    result = await box.call("grep", {"pattern": "needle"})
    assert "1:… xxx" in result.text
    assert "needle" in result.text
    assert "chars]" not in result.text
