"""Formatters: the real ones, on projects that ask for them; and bad ones, written for the purpose."""

import os
import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from handtools import Toolbox, local_workspace
from handtools.host.language.formatters import FORMATTERS, LocalFormatters, project_formatter
from handtools.host.sandbox.runners.runner_selection import UnconfinedRunner
from handtools.host.syntax.ast_grep_syntax import TreeSyntax
from handtools.toolbox import CODING

CI = Path(__file__).parents[3] / ".ci"


class Case(NamedTuple):
    """A project that asks for a formatter, and an edit in it."""

    settings: str
    says: str
    path: str
    before: str
    old: str
    new: str
    after: str


CASES = {
    "ruff": Case(
        "ruff.toml",
        "",
        "a.py",
        "x = 1\n",
        "x = 1",
        "x = f( 1,2 )",
        "x = f(1, 2)\n",
    ),
    "black": Case(
        "pyproject.toml",
        "[tool.black]\n",
        "a.py",
        "x = 1\n",
        "x = 1",
        "x = {  'a':1 }",
        'x = {"a": 1}\n',
    ),
    "prettier": Case(
        ".prettierrc",
        "{}",
        "a.ts",
        "const a = 1;\n",
        "const a = 1;",
        "const a={b:1}",
        "const a = { b: 1 };\n",
    ),
    "biome": Case(
        "biome.json",
        "{}",
        "a.js",
        "const a = 1;\n",
        "const a = 1;",
        "const a={b:1}",
        "const a = { b: 1 };\n",
    ),
    "clang-format": Case(
        ".clang-format",
        "BasedOnStyle: LLVM\n",
        "a.c",
        "int a;\n",
        "int a;",
        "int  a=1 ;",
        "int a = 1;\n",
    ),
    "shfmt": Case(
        ".editorconfig",
        "[*.sh]\nindent_style = space\nindent_size = 2\n",
        "a.sh",
        "a\n",
        "a",
        "if a;then\nb\nfi",
        "if a; then\n  b\nfi\n",
    ),
    "gofmt": Case(
        "go.mod",
        "module m\n",
        "a.go",
        "package a\n\nvar b = 1\n",
        "var b = 1",
        "var  b=2",
        "package a\n\nvar b = 2\n",
    ),
    "rustfmt": Case(
        "rustfmt.toml",
        "",
        "a.rs",
        "fn a() {}\n",
        "fn a() {}",
        "async fn a(){b( );}",
        "async fn a() {\n    b();\n}\n",
    ),
}


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    go = next((CI / "servers/python/lib").glob("python3*/site-packages/go/bin"), None)
    ours = (CI / "formats/bin", Path(sys.executable).parent, *([go] if go else []))
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, ours), os.environ["PATH"]]))


def project(root: Path, files: dict[str, str], *, seconds: float = 40.0) -> Toolbox:
    """Formatters with time enough for the slowest on a busy machine."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    formatters = LocalFormatters(root, TreeSyntax(), seconds=seconds)
    return Toolbox(CODING, workspace=local_workspace(root, formatters=formatters))


async def edited(tools: Toolbox, path: str, old: str, new: str) -> str:
    result = await tools.call("edit", {"path": path, "old_string": old, "new_string": new})
    assert result.ok, result.text
    return result.text


def fake(root: Path, script: str) -> None:
    """A project's own copy of prettier."""
    program = root / "node_modules/.bin/prettier"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/bash\n{script}\n")
    program.chmod(0o755)


@pytest.mark.parametrize("name", CASES)
async def test_an_edit_is_formatted_as_the_project_asks_and_the_model_is_told(
    name: str, tmp_path: Path
) -> None:
    settings, says, path, before, old, new, after = CASES[name]
    if name == "rustfmt" and not shutil.which(name):
        pytest.skip("machine: no Rust here")
    async with project(tmp_path, {settings: says, path: before}) as tools:
        said = await edited(tools, path, old, new)
        assert (tmp_path / path).read_text() == after, said
        assert f"{name} then formatted {path}:" in said
        assert re.search(r"^\+", said.partition("then formatted")[2], re.MULTILINE)
        # The next edit uses what the formatter made of it.
        last = after.splitlines()[-1]
        assert f"+{last}" in said
        await edited(tools, path, last, f"{last} ")
        # One step back for each call, the formatting included.
        assert (await tools.call("undo", {"scope": "path", "name": path, "version": 0})).ok
        assert (tmp_path / path).read_text() == before


def test_every_formatter_of_the_table_is_tried() -> None:
    assert {formatter.name for formatter in FORMATTERS} == set(CASES)


@pytest.mark.parametrize("name", CASES)
async def test_without_settings_nothing_runs(name: str, tmp_path: Path) -> None:
    _, _, path, before, old, new, _ = CASES[name]
    async with project(tmp_path, {path: before}) as tools:
        said = await edited(tools, path, old, new)
    assert "formatted" not in said
    assert (tmp_path / path).read_text() == before.replace(old, new)


async def test_settings_of_another_tool_in_the_same_file_ask_for_nothing(tmp_path: Path) -> None:
    async with project(tmp_path, {"pyproject.toml": "[tool.other]\n", "a.py": "x = 1\n"}) as tools:
        assert "formatted" not in await edited(tools, "a.py", "1", "f( 1 )")


async def test_in_a_file_that_was_not_clean_only_the_lines_of_the_edit_are_formatted(
    tmp_path: Path,
) -> None:
    before = "".join(f"def f{n}( a,b ):\n    return   a+b\n\n\n" for n in range(30))
    async with project(tmp_path, {"ruff.toml": "", "a.py": before}) as tools:
        said = await edited(tools, "a.py", "def f7( a,b ):", "def f7( a,b,c ):")
    expected = before.replace("def f7( a,b ):\n    return   a+b\n", "def f7(a, b, c):\n    return a + b\n")
    assert (tmp_path / "a.py").read_text() == expected
    assert "ruff then formatted a.py" in said


async def test_a_new_file_is_formatted_whole(tmp_path: Path) -> None:
    async with project(tmp_path, {"ruff.toml": ""}) as tools:
        result = await tools.call("write", {"path": "a.py", "content": "x=1\ny  =  2\n"})
        assert "ruff then formatted a.py" in result.text
    assert (tmp_path / "a.py").read_text() == "x = 1\ny = 2\n"


async def test_the_nearest_settings_decide(tmp_path: Path) -> None:
    files = {"ruff.toml": "", "sub/ruff.toml": 'format.quote-style = "single"\n', "sub/a.py": "x = 1\n"}
    async with project(tmp_path, files) as tools:
        await edited(tools, "sub/a.py", "1", '"one"')
    assert (tmp_path / "sub/a.py").read_text() == "x = 'one'\n"


async def test_code_that_does_not_parse_is_left_and_the_model_is_told(tmp_path: Path) -> None:
    async with project(tmp_path, {"ruff.toml": "", "a.py": "x = 1\n"}) as tools:
        said = await edited(tools, "a.py", "x = 1", "x = (")
    assert "a.py: not formatted: ruff failed" in said
    assert (tmp_path / "a.py").read_text() == "x = (\n"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exec sleep 600", "took longer than"),
        ("trap '' TERM; (sleep 600 & sleep 600)", "took longer than"),
        ("cat >/dev/null; echo oops >&2; exit 3", "failed: oops"),
        ("cat >/dev/null", "changed more than formatting"),
        ("cat >/dev/null; echo 'Error: no such parser'", "changed more than formatting"),
        ("head -c 20", "changed more than formatting"),
        ("tr -d '}'", "broke the syntax"),
        ("yes", "failed"),
        ("echo changed > a.ts; cat", "failed"),
    ],
    ids=[
        "hangs",
        "hangs hard",
        "fails",
        "says nothing",
        "says something else",
        "cuts",
        "breaks",
        "floods",
        "writes",
    ],
)
async def test_a_bad_formatter_changes_nothing(script: str, said: str, tmp_path: Path) -> None:
    fake(tmp_path, f"set -e\n{script}")
    text = "".join(f"function f{n}() {{\n  return {n};\n}}\n" for n in range(20))
    async with project(tmp_path, {".prettierrc": "{}", "a.ts": text}, seconds=1.5) as tools:
        answer = await edited(tools, "a.ts", "return 7;", "return 77;")
    assert "a.ts: not formatted: prettier " in answer
    assert said in answer
    assert (tmp_path / "a.ts").read_text() == text.replace("return 7;", "return 77;")


async def test_a_formatter_does_not_see_what_is_private(tmp_path: Path) -> None:
    fake(tmp_path, "cat; cat .env 2>/dev/null || true")
    async with project(tmp_path, {".prettierrc": "{}", ".env": "// KEY\n", "a.ts": "a;\n"}) as tools:
        await edited(tools, "a.ts", "a;", "b;")
    assert (tmp_path / "a.ts").read_text() == "b;\n"


async def test_where_nothing_confines_it_no_code_of_the_project_runs(tmp_path: Path) -> None:
    fake(tmp_path, "tr a-z A-Z")
    (tmp_path / ".prettierrc").write_text("{}")
    assert LocalFormatters(tmp_path, TreeSyntax()).formats("a.ts")
    assert not LocalFormatters(tmp_path, TreeSyntax(), runner=UnconfinedRunner).formats("a.ts")


async def test_a_command_and_an_undo_are_left_as_they_are(tmp_path: Path) -> None:
    async with project(tmp_path, {"ruff.toml": "", "a.py": "x=1\n"}) as tools:
        ran = await tools.call("bash", {"command": "echo 'y=2' >> a.py"})
        assert ran.ok, ran.text
        assert (tmp_path / "a.py").read_text() == "x=1\ny=2\n"


async def test_the_files_of_a_patch_are_formatted_and_undone_with_it(tmp_path: Path) -> None:
    files = {f"f{n}.py": "x = 1\n" for n in range(8)}
    changes = "".join(
        f"*** Update File: {name}\n@@\n-x = 1\n+x = f( {number} )\n" for number, name in enumerate(files)
    )
    async with project(tmp_path, {"ruff.toml": "", **files}) as tools:
        result = await tools.call("patch", {"patch": f"*** Begin Patch\n{changes}*** End Patch\n"})
        assert result.ok, result.text
        assert all(
            (tmp_path / name).read_text() == f"x = f({number})\n" for number, name in enumerate(files)
        )
        assert (await tools.call("undo", {"scope": "session", "name": "default"})).ok
    assert all((tmp_path / name).read_text() == "x = 1\n" for name in files)


def test_only_settings_inside_the_workspace_count(tmp_path: Path) -> None:
    (tmp_path / "ruff.toml").write_text("")
    inner = tmp_path / "inner"
    inner.mkdir()
    assert project_formatter(str(tmp_path), "inner/a.py") is not None
    assert project_formatter(str(inner), "a.py") is None


def test_a_pipe_in_place_of_settings_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "pyproject.toml")
    assert project_formatter(str(tmp_path), "a.py") is None
