"""Reading a project tree without importing it, for the rules beside this file."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def package(root: Path) -> Path:
    """The package of a project."""
    return root / "src" / "handtools"


def modules(folder: Path) -> list[Path]:
    """Every Python file below a folder."""
    return sorted(folder.rglob("*.py"))


def named(root: Path, path: Path) -> str:
    """A file as problems name it."""
    base = package(root) if path.is_relative_to(package(root)) else root
    return path.relative_to(base).as_posix()


def tree(path: Path) -> ast.Module:
    """The syntax tree of a file, which nobody may change: copies of a file share it."""
    return _parsed(path.read_text("utf-8"))


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def functions(path: Path) -> Iterator[Function]:
    """Every function of a file, nested ones included."""
    return (node for node in ast.walk(tree(path)) if isinstance(node, Function))


def classes(path: Path) -> Iterator[ast.ClassDef]:
    """Every class of a file."""
    return (node for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef))


def imported(path: Path) -> set[str]:
    """The first part of every module that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def assigned(path: Path, name: str) -> object:
    """The literal that a module gives a name."""
    for node in tree(path).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return ast.literal_eval(node.value)
    raise LookupError(f"{path} does not assign {name}")


def defined(path: Path) -> set[str]:
    """The names that a module defines itself at its top: not the ones it imports."""
    found: set[str] = set()
    for node in tree(path).body:
        if isinstance(node, Function | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found
