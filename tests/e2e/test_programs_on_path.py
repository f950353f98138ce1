"""Programs on the user's PATH run in a confined command as they do outside, and nothing else is shown for them."""

import os
import shutil
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from handtools import Toolbox, local_workspace
from handtools.core.errors import UsageError
from handtools.host.sandbox.runners.bubblewrap import BubblewrapRunner
from handtools.toolbox import coding
from handtools.tools.bash import bash

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or bool(BubblewrapRunner().unavailable_reason()),
    reason="machine: bubblewrap does not work",
)
PACKAGES = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py")


@pytest.fixture
def work(tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    return root


@pytest.fixture
def box(tmp_path, work):
    def made(**options):
        return Toolbox([bash], workspace=local_workspace(work, state=tmp_path / "state", **options))

    return made


async def said(box, script):
    result = await box.call("bash", {"command": script})
    return result.text


def environment(folder: Path) -> Path:
    """A virtual environment with pytest in it, made without a network."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    for name in PACKAGES:
        found = find_spec(name)
        assert found is not None
        assert found.origin is not None
        source = Path(found.origin)
        if source.name == "__init__.py":
            shutil.copytree(source.parent, packages / name)
        else:
            shutil.copy(source, packages)
    program = folder / "bin" / "pytest"
    program.write_text(f"#!{folder}/bin/python\nimport sys, pytest\nsys.exit(pytest.main())\n")
    program.chmod(0o755)
    return folder


async def test_pytest_of_an_environment_outside_the_workspace_runs_if_it_is_first_on_path(
    tmp_path, work, box, monkeypatch
):
    made = environment(tmp_path / "envs" / "dev")
    monkeypatch.setenv("PATH", f"{made}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("VIRTUAL_ENV", str(made))
    (work / "test_it.py").write_text("import sys\ndef test_it():\n    assert 'envs/dev' in sys.prefix\n")
    text = await said(box(), "pytest -q -p no:cacheprovider; which pytest; touch $VIRTUAL_ENV/x")
    assert "1 passed" in text, text
    assert f"{made}/bin/pytest" in text
    assert "Read-only file system" in text


async def test_a_link_to_a_program_in_an_environment_of_its_own_runs_as_with_pipx(
    tmp_path, box, monkeypatch
):
    home = tmp_path / "home"
    made = environment(home / ".local" / "share" / "pipx" / "venvs" / "pytest")
    (home / ".local" / "bin").mkdir()
    (home / ".local" / "bin" / "pytest").symlink_to(made / "bin" / "pytest")
    (home / ".local" / "share" / "keyring").write_text("secret")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home}/.local/bin:/usr/bin:/bin")
    text = await said(box(), f"pytest --version; cat {home}/.local/share/keyring")
    assert text.startswith("pytest "), text
    assert "secret" not in text


async def test_paths_that_the_user_names_can_be_read_and_not_written(tmp_path, box):
    data = tmp_path / "data"
    data.mkdir()
    (data / "file").write_text("given")
    assert "given" not in await said(box(), f"cat {data}/file")
    text = await said(box(readable=[data]), f"cat {data}/file; echo x > {data}/file")
    assert text.startswith("given")
    assert "Read-only file system" in text


CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("held", "reaches"), [(CERTIFICATE, True), (CERTIFICATE + KEY, False), ("x", False)]
)
async def test_a_file_of_trusted_certificates_reaches_commands(tmp_path, box, monkeypatch, held, reaches):
    bundle = tmp_path / "company" / "ca.pem"
    bundle.parent.mkdir()
    bundle.write_text(held)
    (bundle.parent / "other").write_text("secret")
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    text = await said(box(), f'cat "$SSL_CERT_FILE"; cat {bundle.parent}/other')
    assert ("BEGIN CERTIFICATE" in text) == reaches
    assert "secret" not in text


async def test_sockets_of_other_programs_in_readable_paths_are_covered(tmp_path, box):
    data = tmp_path / "data"
    data.mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(data / "s"))
        listening.listen()
        code = f"import socket; socket.socket(socket.AF_UNIX).connect('{data}/s'); print('reached')"
        text = await said(box(readable=[data]), f'ls {data}; /usr/bin/python3 -c "{code}"')
    assert text.startswith("s\n")
    assert "reached" not in text


async def test_the_sets_of_tools_take_readable_paths_too(tmp_path, work, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    (tmp_path / "data").write_text("given")
    async with coding(work, readable=[tmp_path / "data"]) as toolbox:
        assert (await said(toolbox, f"cat {tmp_path}/data")).startswith("given")


@pytest.mark.parametrize("path", ["/", "~", "/root", "/home", "/etc/.."])
def test_paths_that_show_too_much_are_refused(path, box):
    with pytest.raises(UsageError, match="all of"):
        box(readable=[path])


def test_the_state_folder_is_never_readable(tmp_path, box):
    with pytest.raises(UsageError, match="workspace's log"):
        box(readable=[tmp_path / "state" / "scratch"])
