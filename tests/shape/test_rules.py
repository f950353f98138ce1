"""The project keeps its own rules, and each rule notices when it is broken."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from handtools.text.token_estimate import estimate_tokens
from tests.shape import prose_rules, record_rules, source_rules, tool_rules
from tests.shape.reading import ROOT

Rule = Callable[[Path], list[str]]

RULES: list[Rule] = [
    source_rules.public_names,
    source_rules.constants_set_twice,
    source_rules.context_members,
    source_rules.broad_excepts,
    source_rules.next_steps,
    source_rules.posix_outside_host,
    source_rules.system_names_outside_host,
    source_rules.one_door,
    source_rules.cli_output,
    source_rules.git_door,
    source_rules.archive_door,
    source_rules.work_on_import,
    prose_rules.plain_names,
    prose_rules.plain_english,
    tool_rules.one_stem,
    tool_rules.prompt_tokens,
    tool_rules.claims,
    tool_rules.sleeps,
    record_rules.requirements,
    record_rules.demands,
    record_rules.security_claims,
    record_rules.lock,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_project_keeps_the_rule(rule: Rule) -> None:
    assert rule(ROOT) == []


BREACHES: list[tuple[Rule, str, str, str]] = [
    # rule, file, text to add at its end (or "old => new" to replace), what the rule must say
    (
        source_rules.constants_set_twice,
        "src/handtools/core/call.py",
        '_NAME = re.compile("a")\n',
        "core/call.py: _NAME is set 2 times",
    ),
    (
        source_rules.public_names,
        "src/handtools/__init__.py",
        '"Call": "core.call" => "Call": "core.changes"',
        "Call is not defined in core.changes",
    ),
    (
        source_rules.public_names,
        "src/handtools/__init__.py",
        '"Call": "core.call",\n => ',
        "__all__ and _HOMES differ: Call",
    ),
    (
        source_rules.public_names,
        "src/handtools/__init__.py",
        '"Rule", "Text", => "Rule", "Text", "Text",',
        "__all__ names Text twice",
    ),
    (
        source_rules.broad_excepts,
        "src/handtools/core/broken.py",
        "def catch():\n    try:\n        pass\n    except Exception:\n        pass\n",
        "core/broken.py: catch is not listed",
    ),
    (
        source_rules.broad_excepts,
        "src/handtools/core/broken.py",
        "def catch():\n    try:\n        pass\n    except (ValueError, Exception):\n        raise\n",
        "core/broken.py: catch is not listed",
    ),
    (
        source_rules.broad_excepts,
        "src/handtools/core/broken.py",
        "def catch():\n    try:\n        pass\n    except BaseException:\n        pass\n",
        "core/broken.py: catch swallows everything",
    ),
    (
        source_rules.broad_excepts,
        "src/handtools/core/errors.py",
        "except Exception => except ValueError",
        "core/errors.py: exception_raised_by is listed and not there",
    ),
    (
        source_rules.next_steps,
        "src/handtools/host/web/broken.py",
        "raise Unreachable('Nobody is there.')\n",
        "host/web/broken.py:1 Unreachable has no next step",
    ),
    (
        source_rules.next_steps,
        "src/handtools/host/web/broken.py",
        "problem = NotFound('Nothing is there.', hint='')\n",
        "host/web/broken.py:1 NotFound has no next step",
    ),
    (
        source_rules.next_steps,
        "src/handtools/cli/broken.py",
        "raise errors.ToolError('It went wrong.')\n",
        "cli/broken.py:1 errors.ToolError has no next step",
    ),
    (
        source_rules.posix_outside_host,
        "src/handtools/runtime/broken.py",
        "import fcntl\n",
        "runtime/broken.py imports fcntl",
    ),
    (
        source_rules.system_names_outside_host,
        "src/handtools/fleet/broken.py",
        "import os\n\n\ndef run():\n    return os.memfd_create('a')\n",
        "fleet/broken.py:5 uses os.memfd_create",
    ),
    (
        source_rules.system_names_outside_host,
        "src/handtools/fleet/broken.py",
        "from signal import SIGKILL\n",
        "fleet/broken.py:1 uses signal.SIGKILL",
    ),
    (
        source_rules.system_names_outside_host,
        "src/handtools/fleet/broken.py",
        "from pathlib import Path\n\nSTATUS = Path('/proc/self/status')\n",
        "fleet/broken.py:3 uses /proc/self/status",
    ),
    (
        source_rules.system_names_outside_host,
        "src/handtools/fleet/broken.py",
        "def status(pid):\n    return open(f'/proc/{pid}/status')\n",
        "fleet/broken.py:2 uses /proc/",
    ),
    (
        source_rules.system_names_outside_host,
        "src/handtools/fleet/broken.py",
        "FOLDERS = ['/sys/fs/cgroup']\n",
        "fleet/broken.py:1 uses /sys/fs/cgroup",
    ),
    (
        source_rules.system_names_outside_host,
        "src/handtools/fleet/broken.py",
        "import os\n\n\ndef end(pid):\n    os.kill(pid, 9)\n",
        "fleet/broken.py:5 uses os.kill(pid, 9)",
    ),
    *(
        (
            source_rules.cli_output,
            "src/handtools/cli/stats.py",
            f"\n\ndef shown(text: str) -> None:\n    {call}(text)\n",
            f"cli/stats.py uses {call}",
        )
        for call in ("print", "sys.stdout.write", "sys.stderr.buffer.write", "typer.echo", "Console")
    ),
    (
        source_rules.one_door,
        "src/handtools/host/broken.py",
        "import subprocess\n",
        "host/broken.py uses subprocess",
    ),
    (
        source_rules.one_door,
        "src/handtools/host/web/broken.py",
        "def run():\n    from multiprocessing.pool import Pool\n",
        "host/web/broken.py uses multiprocessing",
    ),
    (
        source_rules.one_door,
        "src/handtools/host/broken.py",
        "import os\n\n\ndef run():\n    os.posix_spawn('/bin/true', [], {})\n",
        "host/broken.py uses os.posix_spawn",
    ),
    (
        source_rules.one_door,
        "src/handtools/host/broken.py",
        "from os import execv\n",
        "host/broken.py uses os.execv",
    ),
    (
        source_rules.one_door,
        "src/handtools/host/broken.py",
        "import asyncio\n\n\nasync def run():\n    await asyncio.create_subprocess_exec('true')\n",
        "host/broken.py uses asyncio.create_subprocess_exec",
    ),
    (
        source_rules.one_door,
        "src/handtools/host/broken.py",
        "import anyio\n\n\nasync def run():\n    await anyio.open_process('true')\n",
        "host/broken.py uses anyio.open_process",
    ),
    (
        source_rules.one_door,
        "src/handtools/cli/broken.py",
        "def show(link):\n    import webbrowser\n\n    webbrowser.open(link)\n",
        "cli/broken.py uses webbrowser",
    ),
    (
        source_rules.one_door,
        "src/handtools/host/sandbox/processes/supervisor.py",
        "\n\ndef more():\n    os.system('true')\n",
        "host/sandbox/processes/supervisor.py uses os.system",
    ),
    (
        source_rules.one_door,
        "src/handtools/host/sandbox/processes/pre_exec.py",
        "os.execvpe => print",
        "host/sandbox/processes/pre_exec.py is listed for os.execvpe, which it does not use",
    ),
    (
        source_rules.one_door,
        "src/handtools/fleet/broken.py",
        "import subprocess\n",
        "fleet/broken.py uses subprocess",
    ),
    (
        source_rules.git_door,
        "src/handtools/fleet/broken.py",
        "from handtools.host import programs\n\n\ndef git():\n    return programs.find_program('git', '')\n",
        "fleet/broken.py:5 starts git",
    ),
    (
        source_rules.git_door,
        "src/handtools/host/broken.py",
        "NAME = 'git'\n\n\ndef git(find_program):\n    return find_program(NAME, root='')\n",
        "host/broken.py:5 starts git",
    ),
    (
        source_rules.git_door,
        "src/handtools/cli/broken.py",
        "def git(subprocess):\n    subprocess.run(args=['/usr/bin/git', 'log'])\n",
        "cli/broken.py:2 starts git",
    ),
    (
        source_rules.git_door,
        "src/handtools/cli/broken.py",
        "def git(os):\n    os.system('git fetch')\n",
        "cli/broken.py:2 starts git",
    ),
    (
        source_rules.archive_door,
        "src/handtools/fleet/tar_archives.py",
        "\n\ndef all_of_it(archive, folder):\n    archive.extractall(folder, filter='data')\n",
        "fleet/tar_archives.py uses archive.extractall",
    ),
    (
        source_rules.archive_door,
        "src/handtools/fleet/tar_archives.py",
        "\n\ndef one_of_it(archive, folder):\n    archive.extract('a', folder)\n",
        "fleet/tar_archives.py uses archive.extract",
    ),
    (
        source_rules.archive_door,
        "src/handtools/cli/broken.py",
        "from shutil import unpack_archive\n",
        "cli/broken.py uses shutil.unpack_archive",
    ),
    (
        source_rules.work_on_import,
        "src/handtools/tools/broken.py",
        "register(1)\n",
        "tools/broken.py:1 does something on import",
    ),
    (
        source_rules.work_on_import,
        "src/handtools/tools/broken.py",
        "x = open('y').read()\n",
        "tools/broken.py:1 does something on import",
    ),
    (
        source_rules.work_on_import,
        "src/handtools/tools/broken.py",
        "for x in ():\n    pass\n",
        "tools/broken.py:1 does something on import",
    ),
    (
        tool_rules.one_stem,
        "docs/reference/tools/gone.md",
        "gone",
        "docs/reference/tools/gone.md has no tool",
    ),
    (tool_rules.one_stem, "src/handtools/tools/gone.md", "gone", "src/handtools/tools/gone.md has no tool"),
    (
        tool_rules.one_stem,
        "src/handtools/tools/edit.py",
        "class EditDetails => class Details",
        "edit: no EditDetails",
    ),
    (
        tool_rules.one_stem,
        "src/handtools/tools/edit.py",
        "async def edit( => async def change(",
        "edit: no function edit",
    ),
    (
        tool_rules.claims,
        "src/handtools/tools/now.md",
        "<!-- claim: now.never -->",
        "now.never is promised and no test carries it",
    ),
    (
        tool_rules.claims,
        "src/handtools/tools/edit.md",
        "<!-- claim: now.weekday -->",
        "now.weekday is promised twice",
    ),
    (
        tool_rules.claims,
        "tests/unit/tools/test_broken.py",
        '@pytest.mark.claim("edit.never")\ndef test_it(): ...\n',
        "edit.never is tested and no prompt promises it",
    ),
    (
        tool_rules.sleeps,
        "tests/unit/test_broken.py",
        "import time\ntime.sleep(1)\n",
        "tests/unit/test_broken.py:2 sleeps",
    ),
    (
        record_rules.security_claims,
        "SECURITY.md",
        "::test_every_other_way_out_is_shut => ::test_gone",
        "A command reaches addresses of listed hosts and no other: no test tests/e2e/test_network.py::test_gone",
    ),
    (
        record_rules.security_claims,
        "SECURITY.md",
        "\n| claim | proven by |\n|---|---|\n| It flies | my word |\n",
        "It flies: names no test",
    ),
    (
        prose_rules.plain_names,
        "src/handtools/core/result.py",
        "\ndef f(desk: Result) -> None: ...\n",
        "176 names share no word with their type, and 175 are the most",
    ),
    (
        prose_rules.plain_names,
        "src/handtools/core/result.py",
        "\nMOST_LINES = 1\n",
        "core/result.py: MOST_LINES is a limit: MAX_ or MIN_",
    ),
    (
        prose_rules.plain_english,
        "src/handtools/core/result.py",
        "\n# Nobody is told.\n",
        "7 odd phrases, and 6 are the most",
    ),
    (record_rules.lock, "requirements/dev.txt", "thing==1.0\n", "dev.txt: thing==1.0 has no hash"),
    (
        record_rules.lock,
        "requirements/dev.txt",
        "# --index-url https://index.example\n",
        "dev.txt: https://index.example names a host",
    ),
]


@pytest.mark.parametrize(
    ("rule", "file", "breach", "said"), BREACHES, ids=lambda v: getattr(v, "__name__", None)
)
def test_a_breach_of_the_rule_is_reported(
    rule: Rule, file: str, breach: str, said: str, copy: Path
) -> None:
    known = _problems_of_the_copy(rule, copy)
    _plant(copy / file, breach)
    assert [problem for problem in rule(copy) if problem not in known] == [said]


@pytest.mark.parametrize(
    "part", ["src/handtools/tools/edit.md", "tests/unit/tools/test_edit.py", "docs/reference/tools/edit.md"]
)
def test_a_tool_that_lacks_a_part_is_reported(part: str, copy: Path) -> None:
    (copy / part).unlink()
    assert tool_rules.one_stem(copy) == [f"edit: no {part}"]


def test_too_many_public_names_are_reported(copy: Path) -> None:
    source = copy / "src/handtools/__init__.py"
    names = [f"name{number}" for number in range(31)]
    source.write_text(f"_HOMES = {dict.fromkeys(names, 'core.call')}\n__all__ = {names}\n", "utf-8")
    assert "31 public names, at most 30" in source_rules.public_names(copy)


def test_a_context_of_many_members_is_reported(copy: Path) -> None:
    ports = "".join(f"    def port{number}(self) -> int: ...\n" for number in range(14))
    (copy / "src/handtools/core/context.py").write_text(f"class Context:\n{ports}", "utf-8")
    assert source_rules.context_members(copy) == ["14 members, at most 13"]


def test_a_context_without_a_port_for_some_tools_is_reported(copy: Path) -> None:
    port = "    def web(self) -> Web | None: ...\n"
    (copy / "src/handtools/core/context.py").write_text(f"class Context:\n{port}", "utf-8")
    assert source_rules.context_members(copy) == ["web may be None"]


def test_prompts_that_cost_too_much_are_reported(copy: Path) -> None:
    long = "word " * 1_200
    for stem in ("now", "think"):
        (copy / f"src/handtools/tools/{stem}.md").write_text(long, "utf-8")
    said = tool_rules.prompt_tokens(copy)
    assert said[:2] == [f"{stem}: {estimate_tokens(long)} tokens, at most 200" for stem in ("now", "think")]
    assert said[2].startswith("all prompts: ")


def test_a_requirement_without_a_row_is_reported(copy: Path) -> None:
    _plant(copy / record_rules.PAGE, "| R-RT-01 | => | R-RT-91 |")
    said = record_rules.requirements(copy)
    assert {"R-RT-01: no row", "R-RT-91: not a requirement, or twice"} <= set(said)


def test_a_row_that_names_a_missing_test_or_module_is_reported(copy: Path) -> None:
    page = copy / record_rules.PAGE
    rows = [line for line in page.read_text("utf-8").splitlines() if not line.startswith("| R-MS-01")]
    rows.append("| R-MS-01 | x | `tools/never.py` | `tests/unit/tools/test_now.py::test_never` |")
    page.write_text("\n".join(rows), "utf-8")
    assert {
        "R-MS-01: no module tools/never.py",
        "R-MS-01: no test tests/unit/tools/test_now.py::test_never",
    } <= set(record_rules.requirements(copy))


def test_a_built_requirement_can_not_go_back_to_planned(copy: Path) -> None:
    page = copy / record_rules.PAGE
    rows = [line for line in page.read_text("utf-8").splitlines() if not line.startswith("| R-MS-01")]
    page.write_text("\n".join([*rows, "| R-MS-01 | x | — | planned (issue 7) |"]), "utf-8")
    assert "R-MS-01: planned, but it must be there" in record_rules.requirements(copy)


@pytest.mark.parametrize(
    ("breach", "said"),
    [
        ("| 004:32 | => | 004:9999 |", "004:32: no row"),
        ("| 004:32 | => | 004:31 |", "004:31: no demand, or twice"),
        ("test_ctrl_c_is_said_and => test_never_", "004:32: no test"),
        ("| Ctrl+C | yes | => | Ctrl+C | not yet |", "004:32: not yet, but it must be there"),
        (
            "| Ctrl+C | yes | => | Ctrl+C | decision: somewhere |",
            "004:32: 'decision: somewhere' is no verdict",
        ),
        (
            "../decisions/06- => ../decisions/96-",
            "002:50: no page ../decisions/96-edit-agent-and-vendor-editor.md",
        ),
        ("### R-MS-01 => ### R-MS-91", "000:15: under no requirement"),
        (
            "`tests/e2e/test_several_folders.py::test_no_path_leads_into_a_folder_that_is_kept_apart` => none",
            "000:66: names no test",
        ),
    ],
)
def test_a_demand_that_nothing_proves_is_reported(copy: Path, breach: str, said: str) -> None:
    _plant(copy / record_rules.PAGE, breach)
    found = record_rules.demands(copy)
    assert any(problem.startswith(said) for problem in found), found


@cache
def _problems_of_the_copy(rule: Rule, copy: Path) -> list[str]:
    """What a rule says of the copy before it is broken: some of what is promised is proven outside of it."""
    return rule(copy)


def _plant(path: Path, breach: str) -> None:
    """Add text at the end of a file, made if need be; `old => new` replaces instead."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text("utf-8") if path.exists() else ""
    old, arrow, new = breach.partition(" => ")
    if arrow:
        assert old in text
        path.write_text(text.replace(old, new), "utf-8")
    else:
        path.write_text(text + breach, "utf-8")
