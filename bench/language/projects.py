"""A small project for each server, with one line that can be broken in many ways, each with a name of its own."""

import os
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SEARCH_PATH = os.pathsep.join(
    [os.path.realpath(ROOT / ".ci/servers/bin"), str(ROOT / ".venv/bin"), os.environ.get("PATH", "")]
)
GOOD = "right"
FUNCTIONS = 120
"""In the file that is changed: about 500 lines."""


@dataclass(frozen=True, slots=True)
class Project:
    """Files, and the line that is broken: `{value}` stands for a name that is defined or is not."""

    server: str
    marker: str
    settings: str
    path: str
    head: str
    line: str
    filler: str
    """A function that is repeated, so that there is something to check; `{n}` is its number."""

    def body(self, value: str) -> str:
        """The file with a name in its line."""
        fill = "".join(self.filler.replace("{n}", str(n)) for n in range(FUNCTIONS))
        return self.head + fill + self.line.replace("{value}", value)

    def write(self, root: Path) -> Path:
        """Put the project into a folder, unbroken."""
        root.mkdir(parents=True, exist_ok=True)
        (root / self.marker).write_text(self.settings, "utf-8")
        (root / self.path).write_text(self.body(GOOD), "utf-8")
        return root


_PYTHON = ("a.py", "right = 1\n\n", "def use() -> int:\n    return {value}\n")
_PYTHON_FILL = "def helper_{n}(x: int) -> int:\n    y = x + {n}\n    return y\n\n\n"
_SCRIPT = ("a.ts", "const right: number = 1;\n", "export function use(): number {\n  return {value};\n}\n")
_SCRIPT_FILL = "export function helper{n}(x: number): number {\n  const y = x + {n};\n  return y;\n}\n"
_CONFIG = '{"compilerOptions": {"strict": true, "types": []}}\n'

PROJECTS = (
    Project("ruff", "pyproject.toml", "[tool.ruff]\n", *_PYTHON, _PYTHON_FILL),
    Project("ty", "pyproject.toml", "[project]\nname = 'x'\n", *_PYTHON, _PYTHON_FILL),
    Project("pyrefly", "pyproject.toml", "[project]\nname = 'x'\n", *_PYTHON, _PYTHON_FILL),
    Project("pyright", "pyproject.toml", "[project]\nname = 'x'\n", *_PYTHON, _PYTHON_FILL),
    Project("typescript", "tsconfig.json", _CONFIG, *_SCRIPT, _SCRIPT_FILL),
    Project("typescript-language-server", "tsconfig.json", _CONFIG, *_SCRIPT, _SCRIPT_FILL),
    Project(
        "gopls",
        "go.mod",
        "module example.com/m\n\ngo 1.21\n",
        "a.go",
        "package m\n\nvar right = 1\n\n",
        "func Use() int {\n\treturn {value}\n}\n",
        "func Helper{n}(x int) int {\n\ty := x + {n}\n\treturn y\n}\n\n",
    ),
    Project(
        "clangd",
        "compile_flags.txt",
        "-std=c++17\n",
        "a.cpp",
        "static int right = 1;\n",
        "int use() {\n  return {value};\n}\n",
        "int helper{n}(int x) {\n  int y = x + {n};\n  return y;\n}\n",
    ),
)
