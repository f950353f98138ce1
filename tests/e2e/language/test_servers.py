"""Real servers: what a change breaks, in its file and in others, and what a rename does."""

import anyio
import pytest

from handtools.core.call import Call
from handtools.host.language.server_pool import LANGUAGE_THREAD
from handtools.toolbox import CODING, Toolbox, local_workspace
from tests.e2e.language.projects import CASES, PATIENCE, PYTHON, SEARCH_PATH, real_box, written

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def known(box, path, operation="diagnostics"):
    """Wait until the server has loaded and knows a file."""
    with anyio.fail_after(PATIENCE):
        while True:
            result = await box.call("lsp", {"operation": operation, "path": path})
            if result.ok and "unknown" not in result.text:
                return result


async def edit(box, path, old, new):
    args = {"path": path, "old_string": old, "new_string": new, "replace_all": True}
    result = await box.call("edit", args)
    assert result.ok, result.text
    return result.text.partition("The change was applied.")[2]


@pytest.mark.parametrize("server", CASES)
async def test_a_changed_parameter_reports_exactly_the_callers_that_it_broke(tmp_path, server):
    files, path, old, new, broken = CASES[server]
    async with real_box(tmp_path, server, files) as box:
        await known(box, path)
        said = await edit(box, path, old, new)
        elsewhere = said.partition("It broke other files:")[2]
        named = {line.split(":")[0] for line in elsewhere.splitlines() if ":" in line}
        assert named & set(files) == broken, said
        assert "broken_before" not in said
        assert "undefined_before" not in said
        assert "missing_before" not in said
        mended = await edit(box, path, new, old)
        assert "It broke" not in mended


@pytest.mark.parametrize("server", ["ruff", *CASES])
async def test_a_command_that_breaks_a_file_is_noticed_and_so_is_its_repair(tmp_path, server):
    if server == "ruff":
        files, path = (
            {"pyproject.toml": "[tool.ruff]\n", "core/__init__.py": PYTHON["core/__init__.py"]},
            "core/__init__.py",
        )
    else:
        files, path, *_ = CASES[server]
    async with real_box(tmp_path, server, files) as box:
        await known(box, path)
        broken = await box.call("bash", {"command": f"sed -i 's/return 1/return wrong_name/' {path}"})
        assert "wrong_name" in broken.text
        assert "1 new" in broken.text
        mended = await box.call("bash", {"command": f"sed -i 's/return wrong_name/return 1/' {path}"})
        assert "No errors, 1 fixed" in mended.text


async def test_lines_above_old_errors_do_not_make_them_new(tmp_path):
    rows = "".join(f"x{n}: int = 'text'\n" for n in range(21))
    async with real_box(tmp_path, "ty", {"pyproject.toml": "", "a.py": "head = 1\n" + rows}) as box:
        await known(box, "a.py")
        said = await edit(box, "a.py", "head = 1\n", "head = 1\n\n\n\n\nfresh: int = 'text'\n")
        assert "1 new, 21 remaining" in said
        assert said.count("a.py:") == 1


async def test_a_rename_over_thirty_files_is_one_change_that_one_undo_takes_back(tmp_path):
    files = {
        "pyproject.toml": "[project]\nname = 'x'\n",
        "core/__init__.py": "def area(width: int) -> int:\n    return width\n",
    }
    files |= {f"use{n}.py": f"from core import area\n\nprint(area({n}))\n" for n in range(29)}
    async with real_box(tmp_path, "ty", files) as box:
        await known(box, "core/__init__.py")
        args = {"operation": "rename", "path": "use3.py", "symbol": "area", "line": 3, "text": "surface"}
        call = Call(tool="lsp", args=args)
        result = await box.call(call)
        assert "in 30 files" in result.text
        root = tmp_path / "work"
        assert all("area" not in (root / name).read_text() for name in files)
        await box.call("undo", {"scope": "call", "name": call.id})
        assert all((root / name).read_text() == text for name, text in files.items())


@pytest.mark.parametrize("server", ["typescript", "clangd", "gopls"])
async def test_a_rename_from_a_use_renames_the_definition_and_every_use(tmp_path, server):
    files, path, *_ = CASES[server]
    user = {"typescript": "one.ts", "clangd": "one.cpp", "gopls": "one/one.go"}[server]
    name = "Area" if server == "gopls" else "area"
    async with real_box(tmp_path, server, files) as box:
        await known(box, path)
        args = {"operation": "rename", "path": user, "symbol": name, "text": f"{name}New"}
        result = await box.call("lsp", args)
        assert result.ok, result.text
        for each in files:
            text = (tmp_path / "work" / each).read_text()
            assert f"{name}(" not in text
            assert " as " not in text


async def test_what_a_server_knows_is_answered_in_code_lines(tmp_path):
    async with real_box(tmp_path, "pyright", PYTHON) as box:
        await known(box, "core/__init__.py")
        where = {"path": "uses/one.py", "symbol": "area", "line": 3}
        assert "def area(width" in (await box.call("lsp", {"operation": "definition", **where})).text
        used = await box.call(
            "lsp", {"operation": "references", "path": "core/__init__.py", "symbol": "area"}
        )
        assert {place.path for place in used.details.places} >= {
            "core/__init__.py",
            "uses/one.py",
            "uses/two.py",
        }
        assert "width: int" in (await box.call("lsp", {"operation": "hover", **where})).text
        outline = await box.call("lsp", {"operation": "symbols", "path": "core/__init__.py"})
        assert "def area" in outline.text
        assert "def other" in outline.text
        callers = await box.call(
            "lsp", {"operation": "callers", "path": "core/__init__.py", "symbol": "other"}
        )
        assert "uses/three.py" in callers.text
        found = await box.call(
            "lsp", {"operation": "workspace_symbols", "path": "core/__init__.py", "text": "area"}
        )
        assert "def area" in found.text


async def test_an_action_of_a_server_is_a_change_like_any_other(tmp_path):
    files = {"pyproject.toml": "[tool.ruff]\nlint.select = ['F401']\n", "a.py": "import os\n\nprint(1)\n"}
    async with real_box(tmp_path, "ruff", files) as box:
        listed = await box.call("lsp", {"operation": "actions", "path": "a.py", "line": 1})
        title = next(each for each in listed.details.titles if "Remove unused import" in each)
        made = await box.call("lsp", {"operation": "actions", "path": "a.py", "line": 1, "text": title})
        assert made.ok, made.text
        assert "import os" not in (tmp_path / "work" / "a.py").read_text()


async def test_ten_workspaces_of_one_folder_share_a_server_and_the_last_one_ends_it(tmp_path):
    box = real_box(tmp_path, "ty", PYTHON)
    first = box.workspace.language
    await known(box, "core/__init__.py")
    slots = len(LANGUAGE_THREAD.pool.slots)
    others = []
    for number in range(9):
        language = type(first)(
            tmp_path / "work",
            cache=tmp_path / "cache",
            runner=lambda: first._runner,
            servers=first._finder.servers,
            search_path=SEARCH_PATH,
        )
        workspace = local_workspace(tmp_path / "work", state=tmp_path / f"s{number}", language=language)
        other = Toolbox([*CODING], workspace=workspace)
        assert "(ty)" in await edit(other, "core/__init__.py", "return 1", "return  1")
        await edit(other, "core/__init__.py", "return  1", "return 1")
        others.append(other)
    assert len(LANGUAGE_THREAD.pool.slots) == slots
    await box.aclose()
    assert len(LANGUAGE_THREAD.pool.slots) == slots
    for other in others:
        await other.aclose()
    assert len(LANGUAGE_THREAD.pool.slots) == slots - 1


async def test_a_fifth_server_takes_the_place_of_the_one_that_was_used_longest_ago(tmp_path):
    boxes = []
    for number in range(6):
        folder = tmp_path / str(number)
        folder.mkdir()
        box = real_box(folder, "ruff", {"pyproject.toml": "[tool.ruff]\n", "a.py": "x = 1\n"})
        await known(box, "a.py")
        boxes.append(box)
    running = [
        slot
        for slot in LANGUAGE_THREAD.pool.slots.values()
        if slot.client is not None and slot.client.alive
    ]
    assert len(running) <= 4
    assert "No errors" in await edit(boxes[0], "a.py", "x = 1", "x = 2")
    for box in boxes:
        await box.aclose()


def test_the_projects_of_these_tests_can_be_written(tmp_path):
    assert (written(tmp_path, PYTHON) / "uses/one.py").exists()


async def test_a_linter_does_not_answer_for_the_type_checker(tmp_path):
    files = PYTHON | {"ruff.toml": ""}
    async with real_box(tmp_path, "pyright", files, servers=("pyright", "ruff")) as box:
        await known(box, "core/__init__.py")
        where = {"path": "core/__init__.py", "symbol": "area"}
        used = await box.call("lsp", {"operation": "references", **where})
        assert used.ok, used.text
        assert used.details.server == "pyright"
        assert {place.path for place in used.details.places} >= {"uses/one.py", "uses/two.py"}
        assert "width: int" in (await box.call("lsp", {"operation": "hover", **where})).text


async def test_a_server_that_has_just_started_is_not_called_complete(tmp_path):
    """Whatever it finds at once: all of it, or a part that is said to be one."""
    async with real_box(tmp_path, "pyright", PYTHON) as box:
        where = {"path": "core/__init__.py", "symbol": "area"}
        used = await box.call("lsp", {"operation": "references", **where})
        assert used.ok, used.text
        every = {place.path for place in used.details.places} >= {"uses/one.py", "uses/two.py"}
        assert every or "at least" in used.text
