"""Small wrong versions of a module, one change each, made over its syntax tree."""

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: in which module and function, what stood there and what stands there now."""

    module: str
    function: str
    before: str
    after: str
    place: int
    again: int = 0

    def __str__(self) -> str:
        again = f" (again {self.again})" if self.again else ""
        return f"{self.module}:{self.function}: {self.before} -> {self.after}{again}"


def mutants_of(module: str, source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its source."""
    found: list[Mutant] = []
    seen = Counter[str]()
    for place, (node, function) in enumerate(_places(ast.parse(source))):
        if (changed := _changed(node)) is not node:
            mutant = Mutant(module, function, _shown(node), _shown(changed), place)
            found.append(replace(mutant, again=seen[str(mutant)]))
            seen[str(mutant)] += 1
    return found


def mutated(source: str, mutant: Mutant) -> ast.Module:
    """The source with the mutant's one change."""
    tree = ast.parse(source)
    old, _ = list(_places(tree))[mutant.place]
    _Swap(old, _changed(old)).visit(tree)
    return ast.fix_missing_locations(tree)


def _places(node: ast.AST, function: str = "module") -> Iterator[tuple[ast.AST, str]]:
    """Nodes that may be changed; not annotations, decorators and how a field is shown: no user sees those."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "field":
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        function = node.name if function == "module" else f"{function}.{node.name}"
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child, function
                yield from _places(child, function)


def _changed(node: ast.AST) -> ast.AST:
    """The node with its mistake; itself where we know none."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            return _with(node, ops=[COMPARISONS[type(op)]()])
        case ast.BoolOp(op=op):
            return _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.BinOp(op=op) if type(op) in ARITHMETIC:
            return _with(node, op=ARITHMETIC[type(op)]())
        case ast.Constant(value=bool(value)):
            return ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            return ast.Constant(value + 1)
        case ast.If(test=test) | ast.While(test=test) if isinstance(
            test, ast.Name | ast.Call | ast.Attribute
        ):
            return _with(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.Return(value=ast.expr() as value) if not _is_none(value) and not _is_bool(value):
            return ast.Return(ast.Constant(None))
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return ast.Pass()
        case ast.Expr(value=ast.Constant()):
            return node
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
            return ast.Pass()
    return node


def _with(node: ast.AST, **changed: object) -> ast.AST:
    new = copy.copy(node)
    for name, value in changed.items():
        setattr(new, name, value)
    return new


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_bool(node: ast.AST) -> bool:
    """Whether it is True or False, for which the other one is the mistake that can be noticed."""
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _shown(node: ast.AST) -> str:
    """The first line of its source: a changed `if` is known by its condition."""
    return ast.unparse(node).splitlines()[0]


class _Swap(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else super().generic_visit(node)
