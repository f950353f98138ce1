from hypothesis import given
from hypothesis import strategies as st

from handtools.text.search.glob import BadGlob, Glob, GlobSet, PathGlobs, brace_alternatives

names = st.text(st.sampled_from("ab.*[]{}!-,\\é"), min_size=1, max_size=6).filter(
    lambda name: name not in (".", "..")
)
paths = st.lists(names, min_size=1, max_size=5).map("/".join)
simple_names = st.text(st.sampled_from("ab"), min_size=1, max_size=4)
simple_paths = st.lists(simple_names, min_size=1, max_size=5).map("/".join)
components = st.text(st.sampled_from("ab*?"), min_size=1, max_size=5) | st.just("**")
globs = st.builds(
    lambda root, parts, end: root + "/".join(parts) + end,
    st.sampled_from(["", "/"]),
    st.lists(components, min_size=1, max_size=4),
    st.sampled_from(["", "/"]),
)
braced = st.recursive(
    simple_names,
    lambda inner: (
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: "{" + ",".join(parts) + "}")
        | st.lists(inner, min_size=2, max_size=3).map("".join)
    ),
    max_leaves=8,
)
anything = st.text(st.sampled_from("ab*?[]{}!-,\\/^")) | st.text()


def fits(pattern: str, name: str) -> bool:
    """Match one component, by trying everything."""
    if not pattern:
        return not name
    if pattern[0] == "*":
        return fits(pattern[1:], name) or (name != "" and fits(pattern, name[1:]))
    return name != "" and pattern[0] in ("?", name[0]) and fits(pattern[1:], name[1:])


def leads(parts: list[str], steps: list[str], *, folder: bool) -> bool:
    """Match all components, by trying everything; what is left of the path lies below."""
    if not parts:
        return bool(steps) or folder
    if parts[0] not in ("**", "***", "****", "*****"):
        return bool(steps) and fits(parts[0], steps[0]) and leads(parts[1:], steps[1:], folder=folder)
    if len(parts) == 1:
        return bool(steps) and leads([], steps[1:], folder=folder)
    return leads(parts[1:], steps, folder=folder) or (
        bool(steps) and leads(parts, steps[1:], folder=folder)
    )


def expected(pattern: str, path: str, *, folder: bool) -> bool:
    body = pattern.rstrip("/")
    parts = [part for part in body.split("/") if part]
    if "/" not in body:
        parts.insert(0, "**")
    wants_folder = pattern.endswith("/")
    return leads(parts, path.split("/"), folder=folder or not wants_folder)


@given(globs, simple_paths, st.booleans())
def test_wildcards_match_what_trying_everything_finds(pattern: str, path: str, folder: bool):
    assert Glob(pattern).matches(path, folder=folder) == expected(pattern, path, folder=folder)


@given(names, paths)
def test_an_escaped_name_matches_itself_and_no_other(name: str, path: str):
    glob = Glob("".join(f"\\{character}" for character in name))
    assert glob.matches(name)
    assert glob.matches(path) == (name in path.split("/"))


@given(braced, simple_names)
def test_braces_stand_for_their_alternatives(pattern: str, name: str):
    def expanded(text: str) -> list[str]:
        """Expand the innermost braces first."""
        close = text.find("}")
        if close < 0:
            return [text]
        start = text.rfind("{", 0, close)
        return [
            whole
            for choice in text[start + 1 : close].split(",")
            for whole in expanded(text[:start] + choice + text[close + 1 :])
        ]

    alternatives = set(expanded(pattern))
    assert Glob(pattern).matches(name) == (name in alternatives)
    assert all(Glob(pattern).matches(each) for each in alternatives)


@given(st.sampled_from("abcxyz-!^]é"), st.sampled_from("abcxyz"), st.sampled_from("abcxyz"))
def test_a_range_holds_what_lies_between_its_ends(name: str, low: str, high: str):
    if low > high:
        low, high = high, low
    assert Glob(f"[{low}-{high}]").matches(name) == (low <= name <= high)
    assert Glob(f"[!{low}-{high}]").matches(name) != (low <= name <= high)


@given(anything, paths)
def test_any_text_is_a_pattern_or_is_refused(pattern: str, path: str):
    try:
        glob = Glob(pattern)
    except BadGlob:
        return
    assert glob.matches(path) in (True, False)


@given(
    st.lists(
        globs | braced | simple_names | simple_names.map("*{}".format) | simple_paths.map("**/{}".format),
        max_size=6,
    ),
    simple_paths,
    st.booleans(),
)
def test_a_union_matches_when_one_of_its_patterns_does(patterns: list[str], path: str, folder: bool):
    for case_sensitive in (True, False):
        several = GlobSet(patterns, case_sensitive=case_sensitive)
        hits = [
            pattern
            for pattern in patterns
            if Glob(pattern, case_sensitive=case_sensitive).matches(path, folder=folder)
        ]
        assert several.matches(path, folder=folder) == bool(hits)
        assert several.first_matching_pattern(path, folder=folder) == (hits[0] if hits else None)


@given(st.lists(globs | simple_names, max_size=4), st.lists(simple_paths, max_size=8))
def test_what_a_set_was_asked_before_changes_no_answer(patterns: list[str], asked: list[str]):
    several = GlobSet(patterns)
    assert [several.matches(path) for path in asked] == [GlobSet(patterns).matches(path) for path in asked]


@given(globs, simple_paths, simple_paths)
def test_what_matches_a_folder_matches_what_is_below(pattern: str, path: str, below: str):
    if Glob(pattern).matches(path, folder=True):
        assert Glob(pattern).matches(f"{path}/{below}")


@given(anything, paths)
def test_patterns_without_braces_match_together_what_the_one_with_braces_matches(pattern: str, path: str):
    try:
        whole = Glob(pattern).matches(path)
    except BadGlob:
        return
    parts = brace_alternatives(pattern)
    assert any(Glob(part).matches(path) for part in parts) == whole
    assert all(brace_alternatives(part) == [part] for part in parts)


@given(st.lists(globs, max_size=3), st.lists(globs, max_size=3), simple_paths, simple_names)
def test_exceptions_only_take_away(meant: list[str], but: list[str], path: str, below: str):
    plain, rule = PathGlobs(tuple(meant)), PathGlobs(tuple(meant), tuple(but))
    assert plain.covers(path) == (not meant or GlobSet(meant).matches(path))
    assert plain.covers(f"{path}/{below}") or not plain.covers(path)
    if plain.covers(path) and not GlobSet(but).matches(path):
        assert rule.covers(path)
    assert plain.covers(path) or not rule.covers(path)
