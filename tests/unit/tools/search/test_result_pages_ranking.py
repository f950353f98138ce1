"""Ranking: which files a reader wants to see first."""

import pytest

from handtools.tools.search.ranked_hits import file_category, has_definition, path_sort_key


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/app.py", 0), ("main.go", 0), ("src/testing/fakes.py", 0), ("src/contest.py", 0),
        ("tests/app.py", 1), ("src/test_app.py", 1), ("pkg/app_test.go", 1), ("web/a.spec.ts", 1),
        ("AppTest.java", 1),
        ("README.md", 2), ("conf/x.yaml", 2),
        ("vendor/a.go", 3), ("a/node_modules/b/tests/c.js", 3), ("x.min.js", 3), ("uv.lock", 3), ("api_pb2.py", 3),
    ],
)  # fmt: skip
def test_source_comes_before_tests_documents_and_what_others_made(path, expected):
    assert file_category(path) == expected


@pytest.mark.parametrize(
    "line",
    [
        "def NAME(x):", "    async def NAME(self):", "class NAME:", "export function NAME() {",
        "pub fn NAME<T>() {",
        "func (s *Server) NAME() {", "type NAME struct {", "const NAME = 1", "#define NAME 1",
        "  interface NAME {",
        "NAME = 1", "NAME: int = 1", "struct NAME {", "static int NAME(void)", "impl<T> NAME {", "enum NAME {",
    ],
)  # fmt: skip
def test_a_line_that_introduces_a_name_defines_it(line):
    start = line.index("NAME")
    assert has_definition([(line, [(start, start + 4)])])


@pytest.mark.parametrize(
    "line",
    [
        "NAME()",
        "x = NAME",
        "return NAME",
        "NAME == 1",
        "    NAME = 1",
        "from a import NAME",
        "# NAME",
        "undef NAME",
    ],
)
def test_a_line_that_uses_a_name_does_not(line):
    start = line.index("NAME")
    assert not has_definition([(line, [(start, start + 4)])])


def test_a_pattern_that_holds_the_word_itself_is_a_definition():
    assert has_definition([("class Server:", [(0, 12)])])


def test_paths_sort_as_a_walk_meets_them():
    assert sorted(["a-b/c", "a/z", "a.py"], key=path_sort_key) == ["a/z", "a-b/c", "a.py"]


def test_one_line_that_defines_it_is_enough():
    uses = ("    value = name(1)", [(12, 16)])
    assert not has_definition([uses, uses])
    assert has_definition([uses, ("fn name() {}", [(3, 7)]), uses])
