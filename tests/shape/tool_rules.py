"""Rules about tools: one stem everywhere, small prompts, no promise without a test."""

import ast
import re
from pathlib import Path

from handtools.core.tool import PROMPT_END_MARK, PROMPT_WITH_TOOL_MARK, TESTED_CLAIM_COMMENT_PATTERN
from handtools.text.token_estimate import estimate_tokens
from tests.shape.reading import defined, functions, modules, package, tree

PROMPT_TOKENS = 200
ALL_PROMPT_TOKENS = 1_800


def stems(root: Path) -> list[str]:
    """The tools of a project, by the names of their modules."""
    return [path.stem for path in sorted((package(root) / "tools").glob("[!_]*.py"))]


def one_stem(root: Path) -> list[str]:
    """What a tool lacks, and pages and prompts whose tool is gone."""
    tools, pages = package(root) / "tools", root / "docs" / "reference" / "tools"
    problems = []
    for stem in stems(root):
        title = "".join(part.capitalize() for part in stem.split("_"))
        names = defined(tools / f"{stem}.py")
        wanted = [f"{title}Params", f"{title}Details"]
        problems += [f"{stem}: no {name}" for name in wanted if name not in names]
        if not names & {stem, f"{stem}_"}:
            problems.append(f"{stem}: no function {stem}")
        files = [
            tools / f"{stem}.md",
            root / "tests" / "unit" / "tools" / f"test_{stem}.py",
            pages / f"{stem}.md",
        ]
        problems += [
            f"{stem}: no {path.relative_to(root).as_posix()}" for path in files if not path.is_file()
        ]
    left = [*tools.glob("*.md"), *(path for path in pages.glob("*.md") if path.stem != "index")]
    return problems + [
        f"{path.relative_to(root).as_posix()} has no tool"
        for path in sorted(left)
        if path.stem not in stems(root)
    ]


def prompt_tokens(root: Path) -> list[str]:
    """Prompts over the budget, one by one and together."""
    costs = {stem: estimate_tokens(_prompt(root, stem)) for stem in stems(root)}
    problems = [
        f"{stem}: {cost} tokens, at most {PROMPT_TOKENS}"
        for stem, cost in costs.items()
        if cost > PROMPT_TOKENS
    ]
    if sum(costs.values()) > ALL_PROMPT_TOKENS:
        problems.append(f"all prompts: {sum(costs.values())} tokens, at most {ALL_PROMPT_TOKENS}")
    return problems


def _prompt(root: Path, stem: str) -> str:
    """The prompt about as the model gets it: marks out, a number for each limit."""
    path = package(root) / "tools" / f"{stem}.md"
    prose = PROMPT_END_MARK.split(path.read_text("utf-8"))[0] if path.is_file() else ""
    return re.sub(
        r"\{[A-Z_]+\}", "50,000", PROMPT_WITH_TOOL_MARK.sub("", TESTED_CLAIM_COMMENT_PATTERN.sub("", prose))
    )


def claims(root: Path) -> list[str]:
    """Promises without a test, tests of no promise, and promises made twice."""
    made = [
        claim
        for path in sorted((package(root) / "tools").glob("*.md"))
        for claim in TESTED_CLAIM_COMMENT_PATTERN.findall(path.read_text("utf-8"))
    ]
    proven = {claim for path in modules(root / "tests") for claim in _marks(path)}
    problems = [f"{claim} is promised twice" for claim in sorted(set(made)) if made.count(claim) > 1]
    problems += [f"{claim} is promised and no test carries it" for claim in sorted(set(made) - proven)]
    return problems + [
        f"{claim} is tested and no prompt promises it" for claim in sorted(proven - set(made))
    ]


def _marks(path: Path) -> set[str]:
    """The ids in `@pytest.mark.claim("…")` and `pytestmark`, and in the marks of parameters."""
    return {
        node.args[0].value
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "pytest.mark.claim"
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }


def sleeps(root: Path) -> list[str]:
    """Tests that wait for time to pass; `sleep(0)` only gives the others a turn."""
    return [
        f"{path.relative_to(root).as_posix()}:{node.lineno} sleeps"
        for path in modules(root / "tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] == "sleep"
        and not (node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)
    ]


def tests_in(root: Path, path: str) -> set[str]:
    """The test functions of a file."""
    return {node.name for node in functions(root / path) if node.name.startswith("test_")}
