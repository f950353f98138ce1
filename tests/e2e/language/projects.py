"""Real servers and small projects for them."""

# ruff: noqa: E501 - sources read better on one line here

import os
from pathlib import Path

import pytest

from handtools.host.language.local_language import LocalLanguage
from handtools.host.language.servers import LANGUAGE_SERVERS
from handtools.host.sandbox.runners.runner_selection import choose_runner
from handtools.runtime.policy import DEFAULTS, Policy
from handtools.toolbox import EVERYTHING, Toolbox, local_workspace

ROOT = Path(__file__).parents[3]
SEARCH_PATH = os.pathsep.join(
    [str(ROOT / ".ci/servers/bin"), str(ROOT / ".venv/bin"), os.environ.get("PATH", "")]
)
PATIENCE = 60.0

PYTHON = {
    "pyproject.toml": "[project]\nname = 'x'\n",
    "core/__init__.py": "def area(width: int, height: int) -> int:\n    return width * height\n\n\ndef other() -> int:\n    return 1\n",
    "uses/one.py": "from core import area\n\nprint(area(width=1, height=2))\n",
    "uses/two.py": "from core import area\n\nbroken_before: int = 'text'\nprint(area(2, height=3))\n",
    "uses/three.py": "from core import other\n\nprint(other())\nold: int = 'text'\n",
}
SCRIPT = {
    "tsconfig.json": '{"compilerOptions": {"strict": true, "types": []}}\n',
    "core.ts": "export function area(o: { width: number; height: number }): number {\n  return o.width * o.height;\n}\n"
    "export function other(): number {\n  return 1;\n}\n",
    "one.ts": "import { area } from './core';\nexport const a = area({ width: 1, height: 2 });\n",
    "two.ts": "import { area } from './core';\nexport const old: number = 'text';\nexport const b = area({ width: 1, height: 3 });\n",
    "three.ts": "import { other } from './core';\nexport const c: string = other();\n",
}
GO = {
    "go.mod": "module example.com/m\n\ngo 1.21\n",
    "core/core.go": "package core\n\nfunc Area(width int, height int) int {\n\treturn width * height\n}\n\nfunc Other() int {\n\treturn 1\n}\n",
    "one/one.go": 'package one\n\nimport "example.com/m/core"\n\nvar A = core.Area(1, 2)\n',
    "two/two.go": 'package two\n\nimport "example.com/m/core"\n\nvar Old int = "text"\n\nvar B = core.Area(1, 3)\n',
    "three/three.go": 'package three\n\nimport "example.com/m/core"\n\nvar C string = core.Other()\n',
}
CPP = {
    "compile_flags.txt": "-std=c++17\n",
    "core.hpp": "#pragma once\ninline int area(int width, int height) {\n  return width * height;\n}\ninline int other() {\n  return 1;\n}\n",
    "one.cpp": '#include "core.hpp"\nint a = area(1, 2);\n',
    "two.cpp": '#include "core.hpp"\nint old = undefined_before;\nint b = area(1, 3);\n',
    "three.cpp": '#include "core.hpp"\nint c = missing_before + other();\n',
}
CASES = {
    # server: files, the file that is changed, what becomes what there, the callers that break
    "pyright": (PYTHON, "core/__init__.py", "width", "breadth", {"uses/one.py"}),
    "ty": (PYTHON, "core/__init__.py", "height", "depth", {"uses/one.py", "uses/two.py"}),
    "typescript": (SCRIPT, "core.ts", "width", "breadth", {"one.ts", "two.ts"}),
    "typescript-language-server": (SCRIPT, "core.ts", "width", "breadth", {"one.ts", "two.ts"}),
    "gopls": (GO, "core/core.go", "width int", "width string", {"one/one.go", "two/two.go"}),
    "clangd": (CPP, "core.hpp", "int width", "const char *width", {"one.cpp", "two.cpp"}),
}


def written(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def real_box(tmp_path, server, files, *, policy=None, listeners=(), servers=None):
    """A toolbox over a project, with one real server; a machine without it fails the test."""
    root = written(tmp_path / "work", files)
    names = servers or (server,)
    language = LocalLanguage(
        root,
        cache=tmp_path / "cache",
        runner=lambda: choose_runner().runner,
        servers=[each for each in LANGUAGE_SERVERS if each.name in names],
        search_path=SEARCH_PATH,
    )
    path = next(name for name in files if language.speaks(name)) if any(map(language.speaks, files)) else ""
    if not path:
        pytest.fail(f"{server} is not installed: run .ci/language-servers")
    workspace = local_workspace(root, state=tmp_path / "state", language=language)
    policy = policy or Policy(defaults=DEFAULTS | {"run": "allow"})
    return Toolbox(EVERYTHING, workspace=workspace, policy=policy, listeners=listeners)
