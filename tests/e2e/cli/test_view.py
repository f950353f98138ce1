"""`handtools view` without a browser: who learns its link, and who is served."""

import contextlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.e2e.cli.conftest import HANDTOOLS

BROWSER = """
import os, sys
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname
page = Path(url2pathname(urlsplit(sys.argv[1]).path))
facts = [sys.argv[1], str(page.stat().st_mode), str(page.parent.stat().st_mode), page.read_text()]
with open(sys.argv[2], "w") as told:
    told.write("\\0".join(facts))
"""
THIEF = """
import os, socket, sys
host, path = sys.stdin.readline().strip().removeprefix("http://").split("/", 1)
address, port = host.split(":")
os.setgid(65534), os.setuid(65534)
asking = socket.socket()
asking.settimeout(60)
asking.connect((address, int(port)))
asking.sendall(f"GET /{path} HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n".encode())
while more := asking.recv(4096):
    sys.stdout.buffer.write(more)
"""


@pytest.fixture
def view(shell):
    """Starts `handtools view`, which is stopped at the end."""
    with contextlib.ExitStack() as stack:

        def start(*options, **environment):
            process = stack.enter_context(
                subprocess.Popen(
                    [HANDTOOLS, "view", *options], cwd=shell.folder, env=shell.environment | environment,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                )
            )  # fmt: skip
            stack.callback(stop, process)
            return process

        yield start


def stop(process):
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0


def status(link):
    try:
        with urllib.request.urlopen(link, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code


@pytest.mark.skipif(sys.platform == "win32", reason="machine: no modes of files")
def test_the_browser_gets_a_file_that_only_its_owner_reads_and_no_argument_holds_the_token(
    view, shell, tmp_path
):
    program, told = tmp_path / "browser.py", tmp_path / "told"
    program.write_text(BROWSER)
    os.mkfifo(told)
    process = view(BROWSER=f"{sys.executable} {program} %s {told}")
    said = process.stderr.readline()
    argument, page_mode, folder_mode, page = told.read_text().split("\0")
    link = re.search('url=([^"]+)', page)[1]
    assert f": {link}" in said, "a person whose browser can't open the file has the link"
    token = link.partition("token=")[2]
    assert len(token) > 30
    assert token not in argument
    assert stat.S_IMODE(int(page_mode)) == 0o600
    assert stat.S_IMODE(int(folder_mode)) == 0o700
    assert status(link) == 200
    assert status(link) == 401, "it works once"
    stop(process)
    assert not Path(argument.removeprefix("file://")).exists()


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="machine: only root can become another user"
)
def test_another_user_of_the_machine_is_not_served_and_does_not_use_up_the_link(view):
    link = json.loads(view("--json").stdout.readline())["url"]
    stolen = subprocess.run(
        [sys.executable, "-c", THIEF], input=link, capture_output=True, text=True, timeout=60, check=True
    )
    assert stolen.stdout.startswith("HTTP/1.1 403 ")
    assert "not from the user who runs" in stolen.stdout
    assert status(link) == 200
