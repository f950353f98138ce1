"""The import contracts hold, and each one notices when it is broken."""

# ruff: noqa: E501 - a breach is a line

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shape.reading import ROOT

LAYERS = "Layers: tools, runtime and host never meet"
TOOLS = "No tool knows another tool"
MACHINE = "The machine is touched in host alone: not in text, core and tools"
RUNTIME = "The runtime decides and remembers; it leaves the machine to the ports"
CYCLES = "No cycles between the modules of a package"
ARCHIVES = "Archives are unpacked by one module, into a tree in memory"
PROGRAMS = "Programs of the machine are found and started in host alone"
CONTRACTS = {LAYERS, TOOLS, MACHINE, RUNTIME, CYCLES, ARCHIVES, PROGRAMS}


def checked(root: Path) -> tuple[set[str], str]:
    """The contracts that are broken in a tree, and what the checker says about it."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()"]
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "COLUMNS": "300"}
    options = ["--config", ".importlinter", "--no-cache"]
    done = subprocess.run(
        [*command, *options], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    verdicts = dict(re.findall(r"^(.+?) (KEPT|BROKEN)\b", done.stdout, re.MULTILINE))
    assert set(verdicts) == CONTRACTS, done.stdout + done.stderr
    assert done.returncode == ("BROKEN" in verdicts.values())
    return {name for name, verdict in verdicts.items() if verdict == "BROKEN"}, done.stdout


def test_the_project_keeps_every_contract() -> None:
    broken, said = checked(ROOT)
    assert not broken, said


BREACHES = [
    (LAYERS, "text/planted.py", "import handtools.core.call", "handtools.text.planted -> handtools.core.call"),
    (LAYERS, "tools/planted.py", "import handtools.runtime.policy", "handtools.tools.planted ->"),
    (LAYERS, "runtime/planted.py", "import handtools.host.skills", "handtools.runtime.planted -> handtools.host"),
    (LAYERS, "host/planted.py", "import handtools.tools.edit", "handtools.host.planted -> handtools.tools.edit"),
    (LAYERS, "core/planted.py", "from handtools import Toolbox", "handtools.core.planted -> handtools"),
    (LAYERS, "utils.py", "", "utils\n"),
    (TOOLS, "tools/planted.py", "import handtools.tools.edit", "handtools.tools.planted -> handtools.tools.edit"),
    (TOOLS, "tools/editing/drafts.py", "import handtools.tools.edit", "handtools.tools.editing.drafts -> handtools.tools.edit"),
    (TOOLS, "tools/reading/file_view.py", "import handtools.tools.search.ranked_hits", "handtools.tools.reading.file_view -> handtools.tools.search.ranked_hits"),
    (MACHINE, "text/planted.py", "import os", "handtools.text.planted -> os"),
    (MACHINE, "core/planted.py", "import asyncio", "handtools.core.planted -> asyncio"),
    (MACHINE, "tools/planted.py", "from subprocess import run", "handtools.tools.planted -> subprocess"),
    (MACHINE, "tools/planted.py", "import urllib.request", "handtools.tools.planted -> urllib"),
    (RUNTIME, "runtime/planted.py", "import shutil", "handtools.runtime.planted -> shutil"),
    (ARCHIVES, "fleet/planted.py", "import tarfile", "handtools.fleet.planted -> tarfile"),
    (ARCHIVES, "fleet/templates.py", "from tarfile import open as unpack", "handtools.fleet.templates -> tarfile"),
    (ARCHIVES, "host/media/planted.py", "import zipfile", "handtools.host.media.planted -> zipfile"),
    (PROGRAMS, "fleet/templates.py", "from handtools.host import programs", "handtools.fleet.templates -> handtools.host.programs"),
    (PROGRAMS, "cli/planted.py", "from handtools.host.programs import run_program", "handtools.cli.planted -> handtools.host.programs"),
    (CYCLES, "core/call.py", "import handtools.core.tool", "No cycles are allowed in handtools.core."),
]  # fmt: skip


@pytest.mark.parametrize(("contract", "file", "breach", "said"), BREACHES)
def test_a_breach_of_the_contract_is_reported(
    contract: str, file: str, breach: str, said: str, copy: Path
) -> None:
    path = copy / "src" / "handtools" / file
    text = path.read_text("utf-8") if path.exists() else ""
    path.write_text(f"{text}\n{breach}\n", "utf-8")
    broken, output = checked(copy)
    # What imports a layer above it closes a cycle as well, where that layer imports it.
    assert contract in broken
    assert broken <= {contract, CYCLES}, output
    assert said in output
