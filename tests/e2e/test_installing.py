"""Installing packages from an index that is listed, and from nowhere else: real programs, an index of our own."""

import base64
import hashlib
import io
import json
import os
import shutil
import socket
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from handtools.host.sandbox.runners.bubblewrap import BubblewrapRunner
from tests.e2e.test_network import Confined, interpreter

pytestmark = pytest.mark.skipif(
    bool(BubblewrapRunner().unavailable_reason()), reason="bubblewrap does not work here"
)

HOST = "index.example"
"""A name that only the proxy can look up: in the sandbox there is nobody to ask."""
OTHER = "other.example"
NAME = "tinything"
WHEEL = f"{NAME}-1.0-py3-none-any.whl"
TARBALL = f"{NAME}-1.0.0.tgz"


class Index:
    """Pages by path, and every connection that was made to get them."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.connections = 0
        index = self

        class Page(BaseHTTPRequestHandler):
            def setup(self) -> None:
                super().setup()
                index.connections += 1

            def do_GET(self) -> None:
                body = index.pages.get(self.path.partition("?")[0])
                self.send_response(200 if body is not None else 404)
                kind = "text/html" if self.path.endswith("/") else "application/octet-stream"
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
        self.port = self.server.server_address[1]


def wheel() -> bytes:
    """A package of one module, as pip takes it."""
    meta = f"{NAME}-1.0.dist-info"
    files = {
        f"{NAME}.py": "said = 'installed'\n",
        f"{meta}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1.0\n",
        f"{meta}/WHEEL": "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{meta}/RECORD"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in {**files, f"{meta}/RECORD": record}.items():
            archive.writestr(path, text)
    return packed.getvalue()


def tarball() -> bytes:
    """A package of one module, as npm takes it."""
    files = {
        "package/package.json": json.dumps({"name": NAME, "version": "1.0.0", "main": "index.js"}),
        "package/index.js": "module.exports = 'installed';\n",
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


@pytest.fixture
def index(monkeypatch):
    made = Index()
    packed = wheel()
    mark = hashlib.sha256(packed).hexdigest()
    made.pages[f"/simple/{NAME}/"] = f'<a href="/files/{WHEEL}#sha256={mark}">{WHEEL}</a>'.encode()
    made.pages[f"/files/{WHEEL}"] = packed
    look_up = socket.getaddrinfo

    def told(host, *rest, **more):
        return look_up("127.0.0.1" if host in {HOST, OTHER} else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", told)
    threading.Thread(target=made.server.serve_forever, daemon=True).start()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def confined(tmp_path):
    return Confined(tmp_path)


def install(port: int, host: str = HOST) -> str:
    python = interpreter()
    return f"""
        if {python} -m pip --version >/dev/null 2>&1; then pip="{python} -m pip"
        else {python} -m venv v; pip=v/bin/pip; fi
        PIP_RETRIES=0 PIP_CONFIG_FILE=/dev/null $pip install -q --no-cache-dir --disable-pip-version-check \
            --target t --index-url http://{host}:{port}/simple/ --trusted-host {host} {NAME} &&
        PYTHONPATH=t {python} -c 'import {NAME}; print({NAME}.said)'
    """


async def test_pip_installs_from_a_listed_index_and_the_proxy_sees_every_connection(confined, index):
    listed = (f"{HOST}:{index.port}", f"127.0.0.1:{index.port}")
    ran, said = await confined.run(install(index.port), *listed, seconds=240)
    assert ran.exit.code == 0, said
    assert said.splitlines()[-1] == "installed"
    assert {(visit.host, visit.port, visit.refused) for visit in confined.told} == {(HOST, index.port, "")}
    assert len(confined.told) == index.connections > 0


async def test_pip_installs_nothing_from_an_index_that_is_not_listed(confined, index):
    listed = (f"{OTHER}:{index.port}", f"127.0.0.1:{index.port}")
    ran, said = await confined.run(install(index.port), *listed, seconds=240)
    assert ran.exit.code != 0
    assert "installed" not in said.splitlines()
    assert confined.told
    assert {visit.host for visit in confined.told if visit.refused} == {HOST}
    assert index.connections == 0
    assert any(HOST in note for note in ran.exit.notes)


async def test_a_listed_name_that_leads_to_this_machine_is_refused_unless_that_is_listed_too(
    confined, index
):
    ran, _ = await confined.run(install(index.port), f"{HOST}:{index.port}", seconds=240)
    assert ran.exit.code != 0
    assert index.connections == 0
    assert all(visit.refused for visit in confined.told)


@pytest.mark.parametrize("listed", [HOST, OTHER])
async def test_npm_installs_from_a_listed_registry_only(confined, index, listed):
    if not shutil.which("npm"):
        pytest.skip("machine: there is no npm")
    packed = tarball()
    index.pages[f"/{NAME}/-/{TARBALL}"] = packed
    place = f"http://{HOST}:{index.port}/{NAME}/-/{TARBALL}"
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()
    package = {"name": "work", "version": "1.0.0", "dependencies": {NAME: "1.0.0"}}
    lock = {
        "name": "work",
        "version": "1.0.0",
        "lockfileVersion": 3,
        "packages": {
            "": package,
            f"node_modules/{NAME}": {"version": "1.0.0", "resolved": place, "integrity": integrity},
        },
    }
    (confined.root / "package.json").write_text(json.dumps(package))
    (confined.root / "package-lock.json").write_text(json.dumps(lock))
    registry = f"http://{HOST}:{index.port}/"
    script = (
        f"npm ci --no-audit --no-fund --no-update-notifier --fetch-retries=0 --registry {registry} 2>&1 "
        f"&& node -p 'require(\"{NAME}\")'"
    )
    hosts = (f"{listed}:{index.port}", f"127.0.0.1:{index.port}")
    ran, said = await confined.run(script, *hosts, seconds=240)
    if listed == HOST:
        assert ran.exit.code == 0, said
        assert said.splitlines()[-1] == "installed"
        assert {visit.host for visit in confined.told} == {HOST}
        assert len(confined.told) == index.connections > 0
    else:
        assert ran.exit.code != 0
        assert not os.path.exists(confined.root / "node_modules" / NAME)
        assert index.connections == 0
        assert {visit.host for visit in confined.told if visit.refused} == {HOST}
