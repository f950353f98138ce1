"""Every example that is marked as runnable runs, and prints what its page says.

A block is marked by a comment on the line before it: `<!-- run -->`. A python block is a program; what it
prints is compared with the `text` block that follows it under `<!-- prints -->`, if there is one. A console
block is a list of `$ command` lines, each with its output; `...` at the end of a line stands for its rest, and
a line of `...` for any number of lines. Blocks of one page share one folder and one home, in order.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.shape.reading import ROOT

BLOCK = re.compile(r"<!-- (run|prints) -->\n```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SKIPPED = {".venv", ".ci", ".git", "tests", "node_modules", ".pytest_cache", ".hypothesis"}


@dataclass(frozen=True)
class Example:
    kind: str
    text: str
    printed: str | None


def markdown(root: Path) -> list[Path]:
    found = (path for path in root.rglob("*.md") if SKIPPED.isdisjoint(path.relative_to(root).parts))
    return sorted(found)


def examples(page: str) -> Iterator[Example]:
    blocks = BLOCK.findall(page)
    for number, (mark, kind, text) in enumerate(blocks):
        follows = blocks[number + 1] if number + 1 < len(blocks) else ("", "", "")
        if mark == "run":
            yield Example(kind, text, follows[2] if follows[0] == "prints" else None)


PAGES = [path for path in markdown(ROOT) if "\n<!-- run -->\n" in path.read_text("utf-8")]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_examples_of_the_page_run_and_print_what_it_says(page: Path, tmp_path: Path) -> None:
    found = list(examples(page.read_text("utf-8")))
    assert found, "a mark with no block after it"
    run_all(found, tmp_path)


def test_the_readme_has_examples_that_run() -> None:
    kinds = {example.kind for example in examples((ROOT / "README.md").read_text("utf-8"))}
    assert kinds >= {"python", "console"}


def test_an_example_that_prints_something_else_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run_all([Example("python", "print(1)\n", "2\n")], tmp_path)
    with pytest.raises(AssertionError):
        run_all([Example("console", "$ echo one\ntwo\n", None)], tmp_path)
    run_all([Example("console", "$ printf 'one\\ntwo\\nthree\\n'\non...\n...\nthree\n", None)], tmp_path)


def run_all(found: list[Example], folder: Path) -> None:
    home, work = folder / "home", folder / "work"
    home.mkdir(exist_ok=True)
    work.mkdir(exist_ok=True)
    binaries = str(Path(sys.executable).parent)
    environment = {
        "HOME": str(home),
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "NO_COLOR": "1",
    }
    for example in found:
        if example.kind == "python":
            printed = run([sys.executable, "-c", example.text], work, environment)
            if example.printed is not None:
                compare(printed, example.printed)
        else:
            assert example.kind == "console", f"no way to run {example.kind}"
            for command, output in commands(example.text):
                compare(run(["bash", "-euc", command], work, environment), output)


def run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, f"{command[-1]}\n{done.stdout}{done.stderr}"
    return done.stdout


def commands(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def compare(printed: str, said: str) -> None:
    pattern = ""
    for line in said.strip().splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        elif line.endswith("..."):
            pattern += re.escape(line[:-3]) + r".*\n"
        else:
            pattern += re.escape(line.rstrip()) + r"[ ]*\n"
    assert re.fullmatch(pattern, printed.strip() + "\n" if printed.strip() else ""), (
        f"printed:\n{printed}\nsaid:\n{said}"
    )
