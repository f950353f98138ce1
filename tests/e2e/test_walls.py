"""Real programs that meet a wall of the sandbox: each answer says which, and what to do."""

import os
import shutil
import subprocess
import sys

import pytest

from handtools import Call, Policy, Toolbox
from handtools.host.files.backups import FolderBackups
from handtools.host.sandbox.overlay.overlay_capture import overlay_problem
from handtools.toolbox import CODING, local_workspace
from tests.e2e.test_network import identity, pythons, variables

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="system: layers need Linux")

HOSTS = 'Send `hosts=["example.com"]`'
MET = [
    ("curl", "curl -sS https://example.com/", HOSTS),
    ("curl", "curl -sS https://example.com/ | head -3", HOSTS),
    ("wget", "wget https://example.com/", HOSTS),
    ("git", "git clone https://example.com/a.git x", HOSTS),
    ("ssh", "git clone git@example.com:a.git x", HOSTS),
    ("node", "node -e \"fetch('https://example.com')\"", HOSTS),
    ("psql", "psql -h example.com", HOSTS),
    (
        "python3",
        "python3 -c \"import urllib.request as u; u.urlopen('https://example.com')\"",
        "Send `hosts=[",
    ),
    ("pip", "pip install --retries 0 --target t six", "Send `hosts=["),
    ("npm", "npm install --fetch-retries 0 left-pad", "Send `hosts=["),
    ("apt-get", "apt-get install -y hello", "System packages can't be installed"),
    ("docker", "docker ps", "Docker is not available"),
    ("", "sudo ls", "sudo is not available"),
    ("", "frobnicate --now", "`frobnicate` is not on this command's PATH"),
    ("", "touch /usr/x", "`/usr/x` is read-only: a command may write"),
    ("", "echo x > /etc/x", "`/etc/x` is read-only: a command may write"),
    ("python3", "python3 -c \"open('/usr/x', 'w')\"", "`/usr/x` is read-only: a command may write"),
    (
        "openssl",
        (
            "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -keyout k -out c 2>/dev/null; "
            "openssl s_server -accept 8443 -key k -cert c -quiet & server=$!; "
            "curl -sS --retry 20 --retry-connrefused --retry-delay 0 https://localhost:8443/; kill $server"
        ),
        "ask the user to set `SSL_CERT_FILE`",
    ),
    ("", "cat .env", "`.env` is private"),
    ("python3", "python3 -c \"open('.env')\"", "`.env` is private"),
    ("python3", "python3 -c \"input('? ')\"", "background=true and pty=true"),
    ("tmux", "tmux", "background=true and pty=true"),
    ("systemctl", "systemctl status x", "Start the server itself with background=true"),
    ("python3", "python3 -c \"b'x' * (1 << 44)\"", "ran out of the memory"),
    (
        "python3",
        'python3 -c "fs = [open(0, closefd=False).fileno()]; import os\nwhile 1: os.dup(0)"',
        "opened more files",
    ),
]


@pytest.fixture
async def box(tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    (root / ".env").write_text("KEY=1\n")
    if overlay_problem(root, FolderBackups(tmp_path / "state" / "vault")):
        pytest.skip("machine: no layers can be mounted")
    workspace = local_workspace(root, state=tmp_path / "state")
    async with Toolbox(CODING, workspace=workspace, policy=Policy(unattended="allow")) as toolbox:
        if not workspace.commands.confined:
            pytest.skip("machine: no sandbox")
        yield toolbox


async def ran(box, command, **args):
    return await box.call(Call(tool="bash", args={"command": command, **args}, session="s"))


@pytest.mark.parametrize(("program", "command", "said"), MET, ids=[each[1][:40] for each in MET])
async def test_a_program_that_meets_a_wall_is_answered_with_a_sign(box, program, command, said):
    if program and shutil.which(program) is None:
        pytest.skip(f"machine: no {program}")
    result = await ran(box, command)
    assert said in result.text
    assert any(said in note for note in result.details.notes)


async def test_a_job_that_meets_a_wall_says_so(box):
    started = await ran(box, "sleep 0; frobnicate", background=True)
    args = {"action": "wait", "job": started.details.job, "timeout": 60}
    ended = await box.call(Call(tool="jobs", args=args, session="s"))
    assert "`frobnicate` is not on this command's PATH" in ended.text


async def test_a_command_that_went_well_has_no_sign(box):
    result = await ran(box, "echo 'docs: Could not resolve host: is what curl says' > a; ls; true")
    assert result.details.notes == []


async def test_a_host_that_is_not_listed_is_named_with_what_to_send(box):
    if shutil.which("curl") is None:
        pytest.skip("machine: no curl")
    result = await ran(box, "curl -sS https://example.com/", hosts=["example.org"])
    assert "example.com:443 is not in this command's list of hosts. Add it to `hosts`." in result.text


async def test_a_command_that_takes_too_long_is_told_how_to_take_longer(box):
    result = await ran(box, "sleep 60", timeout=0.5)
    assert "Send a longer `timeout`" in result.text
    assert "background=true" in result.text


AS_USER = """
import os, subprocess, sys, tempfile, anyio
from pathlib import Path
from handtools import Policy, coding

COMMIT = "git init -q lib; cd lib; git -c user.name=a -c user.email=b commit -q --allow-empty -m x"

async def main():
    folder = Path(tempfile.mkdtemp())
    (folder / "work").mkdir()
    os.environ |= {"XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder)}
    subprocess.run(["bash", "-c", COMMIT], cwd=folder / "work", check=True)
    async with coding(folder / "work", policy=Policy(unattended="allow")) as box:
        print((await box.call("bash", {"command": "git clone lib copy"})).text)
        result = await box.call("bash", {"command": 'git clone -q "file://$(realpath lib)" copy'})
        print(result.text, (folder / "work" / "copy" / ".git").is_dir())

anyio.run(main)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="machine: only root can become another user")
def test_a_clone_by_an_ordinary_user_is_told_how_to_do_without_hard_links():
    program = next(iter(pythons(65534)), None) or pytest.skip("machine: no interpreter for that user")
    done = subprocess.run(
        [program, "-c", AS_USER], env=variables(), capture_output=True, text=True, check=False, cwd="/",
        **identity(65534),
    )  # fmt: skip
    first, _, second = done.stdout.partition("Exit code 0")
    if "hardlink different from source" in first:
        assert 'Name the repository as a URL (`"file://$(realpath PATH)"`)' in first
    assert second.endswith("True\n"), done.stdout + done.stderr
