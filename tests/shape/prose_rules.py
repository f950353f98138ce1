"""Rules about words: variables are named after their type or role, and texts are plain English.

`python -m tests.shape.prose_rules` lists what they count.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.shape.reading import ROOT, classes, modules, named, package, tree

MAX_UNRELATED_NAMES = 175
"""How many typed names may share no word with their type. Lower it when there are fewer, never raise it."""
MAX_ODD_PHRASES = 6
"""How many phrases of `ODD_PHRASES` may be in the source; the rest are false alarms. Never raise it."""
USUAL_NAMES = {("ctx", "Context"), ("before", "Node"), ("after", "Node")}
"""Names that every reader of the source knows: the last two are the sides of a `Change`."""
ODD_PHRASES = re.compile(
    r"""\bstands?\b(?!\ (?:for|in\ for|alone)) | \bwalls?\b(?!-clock) | \b(?:the|a|no)\ person\b | \bnobody\b
    | \b(?:takes?|taken|took)\ (?:\w+\ ){0,2}back\b | \b(?:lands|landed)\b | \basked\ about\b | \bis\ a\ question\b
    | \bonly\ looks?\b | \bas\ built\ in\b | \b(?:its|the)\ answer\b | \berrands?\b | \bmend(?:s|ed|ing)?\b
    | \bof\ (?:ours|yours|theirs|its\ own|their\ own|our\ own)\b
    | (?<!there\ )\bis\ no\ (?!longer|more|such|need|way)\w | [,;]\ else\ (?!if)
    | \b(?:and|or)\ the\ like\b | \bin\ place\ of\b | \bbeside\b
    | \bgoes?\ on\b(?!\ (?:to\ )?the) | \b(?:anew|shall|meanwhile)\b | \b(?:says?|told|tells?)\ so\b
    | \b(?:is|are|was|were)\ ended\b | \bhears?\ of\b
    | ^What\ (?!to\b|if\b)(?:\w+\ ){1,8}?(?:is|are|was|has|have|can|may|must)\b(?![^.]*\?)
    | ^Who(?:ever)?\ (?:\w+s|has|is)\ (?![^.]*\?)""",
    re.VERBOSE | re.IGNORECASE,
)
"""Phrases of the old dialect that a native speaker would replace."""


def plain_names(root: Path) -> list[str]:
    """A typed parameter, field or variable shares a word with its type; a limit is called MAX_ or MIN_."""
    problems = [
        f"{named(root, path)}: {name} is a limit: MAX_ or MIN_"
        for path in modules(package(root))
        for name in re.findall(r"(?m)^_?(?:MOST|FEWEST|LONGEST|LEAST)_\w+", path.read_text("utf-8"))
    ]
    if (count := len(unrelated_names(root))) > MAX_UNRELATED_NAMES:
        problems.append(
            f"{count} names share no word with their type, and {MAX_UNRELATED_NAMES} are the most"
        )
    return problems


def unrelated_names(root: Path) -> list[str]:
    """The typed names that share no word with their type."""
    known = {found.name for path in modules(package(root)) for found in classes(path)}
    return [
        f"{named(root, path)}: {name}: {kind}"
        for path in modules(package(root))
        for name, kind in _typed_names(tree(path), known)
        if not _share_a_word(name, kind) and (name, kind) not in USUAL_NAMES
    ]


def _typed_names(module: ast.Module, known: set[str]) -> Iterator[tuple[str, str]]:
    for node in ast.walk(module):
        match node:
            case ast.arg(arg=name, annotation=ast.expr() as annotation):
                yield from _one_type(name, annotation, known)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                yield from _one_type(name, annotation, known)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=kind))) if (
                kind in known
            ):
                yield name, kind


def _one_type(name: str, annotation: ast.expr, known: set[str]) -> Iterator[tuple[str, str]]:
    words = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
    words |= {str(node.value) for node in ast.walk(annotation) if isinstance(node, ast.Constant)}
    if len(kinds := words & known) == 1 and name not in {"self", "cls"}:
        yield name, kinds.pop()


def _share_a_word(name: str, kind: str) -> bool:
    mine, theirs = _words(name), _words(kind)
    return any(a.startswith(b) or b.startswith(a) for a in mine for b in theirs)


def _words(name: str) -> set[str]:
    return {word.lower().rstrip("s") for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def plain_english(root: Path) -> list[str]:
    """Docstrings, comments, messages and prompts use none of the phrases of the old dialect."""
    count = len(odd_phrases(root))
    return [f"{count} odd phrases, and {MAX_ODD_PHRASES} are the most"] if count > MAX_ODD_PHRASES else []


def odd_phrases(root: Path) -> list[str]:
    """The phrases of the old dialect in the source and in prompts."""
    return [
        f"{named(root, path)}: {phrase[0]!r} in {text[:80]!r}"
        for path in (*modules(package(root)), *sorted(package(root).rglob("*.md")))
        for text in _texts(path)
        if (phrase := ODD_PHRASES.search(text))
    ]


def _texts(path: Path) -> Iterator[str]:
    source = path.read_text("utf-8")
    if path.suffix == ".md":
        yield from (re.sub(r"`[^`]*`", "", line) for line in source.splitlines())
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("# ")
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(" ") > 1:
            yield from (line.strip() for line in node.value.splitlines())


if __name__ == "__main__":
    print(*unrelated_names(ROOT), *odd_phrases(ROOT), sep="\n")
