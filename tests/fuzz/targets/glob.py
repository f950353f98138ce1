"""Globs: one pattern, a set of patterns and the prefilter say the same of every path, in bounded time."""

from handtools.text.search.glob import (
    BadGlob,
    Glob,
    GlobPrefilter,
    GlobSet,
    GlobsWithoutDescendants,
    PathSelection,
    glob_in_folder,
    suffix_globs,
)
from tests.fuzz.drawn_values import texts_of

SEEDS = [
    b"src/**/*.{py,pyi}\n!tests\xffsrc/a/b.py\ntests/x",
    b"[a-z]?*\n**\n\\*x\n{a,{b,c}}d\n*a*b*c*d*e*f*\xffaaaaaaaaaaaaaaaaaaaaaa\nad\nA",
]
WORDS = [
    "**/",
    "/**",
    "*.",
    "[!",
    "[^",
    "]",
    "{",
    "}",
    ",",
    "\\",
    "?",
    "/",
    "\n",
    "{a,b}",
    "*a*",
    "\u0130",
    "\u212a",
]
PARSERS = ["handtools.text.search"]
FOUND = {
    "a NUL in brackets ended in re.error": b"[c\x00]\xffa",
}


def fuzz(data):
    globs, names = texts_of(data, 2)
    patterns = globs.split("\n")[:8]
    paths = [path for name in names.split("\n")[:16] if (path := name.strip("/")) and "\0" not in path]
    suffix_globs(patterns)
    for sensitive in (True, False):
        readable = []
        for pattern in patterns:
            try:
                readable.append(Glob(pattern, case_sensitive=sensitive))
                Glob(glob_in_folder(pattern, "d"), case_sensitive=sensitive)
            except BadGlob:
                continue
        kept = [glob.pattern for glob in readable]
        whole, possible = (
            GlobSet(kept, case_sensitive=sensitive),
            GlobPrefilter(kept).possible_matches(paths),
        )
        try:
            alone = GlobsWithoutDescendants(kept, case_sensitive=sensitive)
        except BadGlob:
            alone = None
        assert alone is not None or any(len(each) > 500 or "{" in each for each in kept)
        for path in paths:
            for folder in (False, True):
                expected = any(glob.matches(path, folder=folder) for glob in readable)
                assert whole.matches(path, folder=folder) == expected, path
                assert (whole.first_matching_pattern(path, folder=folder) is not None) == expected
                assert not expected or path in possible
    try:
        PathSelection(patterns)
    except BadGlob:
        return
