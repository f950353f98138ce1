"""Ignore files: every line is a rule or nothing, and no path that a rule matches is passed over by the prefilter."""

from handtools.text.search.gitignore import IgnoreRules, ignored_paths
from tests.fuzz.drawn_values import texts_of

SEEDS = [
    b"*.py[co]\n!keep.pyc\n/build/\n**/x\na/**\nfoo/*/bar\n\\#c\n\\!d\ne\\ \n\xffa/keep.pyc\nbuild/x\nfoo/q/bar",
    b"{a,b}*\n[!a-c]x\n[]]\n[\n**\n/\xff.hidden\nA",
]
WORDS = ["**/", "/**", "*.", "[!", "[^", "]", "{", "}", ",", "!", "\\", "?", "/", "\n", "#"]
PARSERS = ["handtools.text.search"]
FOUND = {
    "a NUL in brackets ended in re.error": b"*.py[c\x1e\x00\x00l]\xffa",
}


def fuzz(data):
    text, names = texts_of(data, 2)
    paths = [
        path
        for name in names.split("\n")
        if (path := name.strip("/").replace("//", "/")) and "\0" not in path
    ]
    rules = IgnoreRules().into("", {".gitignore": text})
    possible = rules.possible_matches(paths)
    for path in paths:
        verdicts = {rules.verdict(path, folder=folder) for folder in (False, True)}
        assert verdicts <= {"ignore", "keep", None}
        if verdicts != {None}:
            assert path in possible
    assert ignored_paths(paths, lambda outer, folder: outer if folder else rules) <= set(paths)
