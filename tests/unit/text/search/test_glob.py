import pickle
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.text.search.glob import BadGlob, Glob, GlobSet, PathGlobs, glob_of_path


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.py", "a.py"),
        ("*.py", "deep/down/a.py"),
        ("*.py", ".py"),
        ("*", ".hidden"),
        ("a?c", "abc"),
        ("[abc]x", "bx"),
        ("[a-cx-z]x", "yx"),
        ("[!a-c]x", "dx"),
        ("[^a-c]x", "dx"),
        ("[]a]", "]"),
        ("[!]a]", "b"),
        ("[a-]", "-"),
        (r"[\]]", "]"),
        ("src/*.py", "src/a.py"),
        ("/a.py", "a.py"),
        ("./a.py", "a.py"),
        ("src//a.py", "src/a.py"),
        ("**/a", "a"),
        ("**/a", "x/y/a"),
        ("a/**", "a/b"),
        ("a/**", "a/b/c"),
        ("a/**/b", "a/b"),
        ("a/**/b", "a/x/y/b"),
        ("a/**/**/b", "a/b"),
        ("**", "x/y"),
        ("a**b", "axxb"),
        ("a*b*c", "a-b-b-c"),
        ("*b", "bbb"),
        ("ab*b", "abb"),
        ("{a,b}.py", "b.py"),
        ("{a,b{c,d}}", "bd"),
        ("{a,b}{1,2}", "b1"),
        ("a{,b}", "a"),
        ("{src/*.py,*.md}", "docs/a.md"),
        ("{src/*.py,*.md}", "src/a.py"),
        ("{{name}}", "{{name}}"),
        ("{one}", "{one}"),
        ("a,b", "a,b"),
        ("a}", "a}"),
        ("a]", "a]"),
        (r"\*", "*"),
        (r"\{a,b\}", "{a,b}"),
        (r"{a\,b,c}", "a,b"),
        ("a.b", "a.b"),
        ("new\nline", "new\nline"),
        ("語*", "語学.txt"),
        ("**/a*b/**/c/*.d", "x/ab/q/aab/z/c/e.d"),
    ],
)
def test_a_pattern_matches(pattern: str, path: str):
    assert Glob(pattern).matches(path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.py", "a.pyc"),
        ("a?c", "a/c"),
        ("a*c", "a/c"),
        ("[!a]", "/"),
        ("a[.-0]b", "a/b"),
        ("[!a-c]x", "ax"),
        ("src/*.py", "other/src/a.py"),
        ("src/*.py", "src/sub/a.py"),
        ("/a.py", "b/a.py"),
        ("a/**", "a"),
        ("a/**/b", "a/x"),
        ("a/**/b", "ab"),
        ("a**b", "a/b"),
        ("ab*b", "ab"),
        ("*ab*ab*", "xab"),
        ("{src/*.py,*.md}", "lib/a.py"),
        (r"\*", "a"),
        ("a.b", "axb"),
        ("a", "b\na"),
        ("A", "a"),
    ],
)
def test_a_pattern_does_not_match(pattern: str, path: str):
    assert not Glob(pattern).matches(path)


def test_what_matches_a_folder_matches_everything_below():
    assert Glob("build").matches("x/build/deep/down")
    assert Glob("/build").matches("build/a")
    assert not Glob("/build").matches("x/build/a")


def test_a_trailing_slash_matches_folders_and_what_is_below_them_only():
    folder = Glob("build/")
    assert not folder.matches("build")
    assert folder.matches("build", folder=True)
    assert folder.matches("build/a")
    assert folder.matches("x/build/a")
    assert not Glob("x/build/").matches("y/x/build/a")


def test_case_can_be_ignored():
    assert Glob("*.PY", case_sensitive=False).matches("a.py")
    assert Glob("[A-C]x", case_sensitive=False).matches("bX")
    assert not Glob("*.PY").matches("a.py")


@pytest.mark.parametrize(
    "pattern",
    ["", "/", ".", "[", "[a", "[!]", "{a,b", "a\\", "[z-a]", "[a/b]", "a\0b", "x" * 100_000],
)
def test_a_pattern_that_cannot_be_meant_is_refused(pattern: str):
    with pytest.raises(BadGlob):
        Glob(pattern)


def test_too_many_alternatives_are_refused():
    assert Glob("{a,b}" * 9).matches("ababababa")
    with pytest.raises(BadGlob, match="1000"):
        Glob("{a,b}" * 10)
    with pytest.raises(BadGlob):
        Glob("{a,b}" * 6_000)
    with pytest.raises(BadGlob):
        Glob("{" * 6_000 + "}" * 6_000 + "{a,b}" * 11)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*" * 10_000, "a" * 4_000),
        ("*a" * 10_000, "a" * 4_000 + "b"),
        ("*a" * 30 + "b", "a" * 4_000),
        ("**/" * 10_000 + "x", "a/" * 2_000 + "y"),
        ("**/*a" * 30 + "b", "aa/" * 1_300 + "a"),
        ("{*a,*b}*" * 9, "a" * 4_000 + "c"),
        ("a*?*?*?*?*?*?*?*?*?*?*?*b", "a" * 4_000),
    ],
)
def test_no_pattern_takes_long(pattern: str, path: str):
    glob = Glob(pattern)
    start = time.process_time()
    glob.matches(path)
    assert time.process_time() - start < 1


def test_any_of_several_patterns_matches_and_the_first_is_named():
    several = GlobSet(["*.pyc", ".git", "/dist/", "**/*.egg-info/**", "*.pyc"])
    assert several.matches("a/b.pyc")
    assert several.matches(".git/config")
    assert several.matches("dist/x")
    assert several.matches("dist", folder=True)
    assert not several.matches("dist")
    assert not several.matches("src/git.py")
    assert several.first_matching_pattern("a.egg-info/b.pyc") == "*.pyc"
    assert several.first_matching_pattern("x/a.egg-info/b") == "**/*.egg-info/**"
    assert several.first_matching_pattern("src") is None


def test_no_patterns_match_nothing():
    assert not GlobSet([]).matches("a")
    assert GlobSet([]).first_matching_pattern("a") is None


def test_asking_many_patterns_about_a_path_is_cheap():
    patterns = [f"name{number}" for number in range(100)] + [f"*.x{number}" for number in range(100)]
    several = GlobSet([*patterns, "secrets/**", "*.min.*"])
    durations = []
    for _ in range(50):
        start = time.perf_counter()
        several.matches("src/package/module/deep/file.py")
        durations.append(time.perf_counter() - start)
    assert min(durations) < 0.0001


@given(
    parts=st.lists(
        st.text("ab*?[]{}!#,\\. é", min_size=1, max_size=6).filter(lambda name: name not in {".", ".."}),
        min_size=1,
        max_size=3,
    )
)
def test_the_pattern_of_a_path_matches_that_path_and_what_is_below_it(parts):
    path = "/".join(parts)
    glob = Glob(glob_of_path(path))
    assert glob.matches(path) and glob.matches(f"{path}/below")
    assert not glob.matches(f"x/{path}") and not glob.matches(f"{path}x")


def test_globs_that_were_used_are_pickled_without_what_was_compiled_from_them():
    globs = PathGlobs(("*.pem", "secrets/"), ("public.pem",))
    unused = pickle.dumps(globs)
    assert globs.covers("a/b.pem")
    assert pickle.dumps(globs) == unused
    assert pickle.loads(unused) == globs
