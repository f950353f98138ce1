"""`handtools view`: another user of the machine tries to be the person at the browser."""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

from bench.escapes.host.place import Place

NOBODY = 65534
_IN_ARGUMENTS = """
import os, re, sys, time
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try: words = open(f"/proc/{pid}/cmdline", "rb").read()
        except OSError: continue
        if (found := re.search(rb"https?://[\\w.:]+/[^\\0 ]*token=[\\w-]+", words)) and int(pid) != os.getpid():
            print(found[0].decode()); sys.exit()
    time.sleep(0.005)
"""
_IS_THE_PERSON = """
import re, sys, urllib.request
link, cookie = sys.argv[1], sys.argv[2]
base = re.match("https?://[^/]+", link)[0]
if not cookie:
    cookie = urllib.request.urlopen(link, timeout=5).headers["set-cookie"].split(";")[0]
page = urllib.request.urlopen(urllib.request.Request(base + "/", headers={"Cookie": cookie}), timeout=5).read().decode()
print("read", len(page))
for call, mark in re.findall(r'name="call" value="([^"]+)"><input type="hidden" name="fingerprint" value="([^"]+)"', page):
    fields = f"call={call}&fingerprint={mark}&answer=project".encode()
    asked = urllib.request.Request(base + "/answer", data=fields, headers={"Cookie": cookie, "Origin": base})
    print("answered", urllib.request.urlopen(asked, timeout=5).read()[:80])
"""


def _as_other(script: str, *words: str) -> list[str]:
    """A program of another user; where only one user can be had, of this one."""
    line = [f"/usr/bin/python3.{sys.version_info.minor}", "-c", script, *words]
    line[0] = line[0] if os.access(line[0], os.X_OK) else "/usr/bin/python3"
    if os.geteuid() != 0:
        return line
    return [
        shutil.which("setpriv") or "setpriv",
        f"--reuid={NOBODY}",
        f"--regid={NOBODY}",
        "--clear-groups",
        *line,
    ]


def _run(line: list[str]) -> str:
    done = subprocess.run(
        line, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False
    )
    return done.stdout.decode("utf-8", "replace")


async def _view(place: Place, *words: str, **env: str) -> "subprocess.Popen[bytes]":
    """A question is open, and the person looks at it in their browser."""
    await place.call("write", path="a.txt", content="a\n")
    await place.call("write", path=".envrc", content="echo evil\n")
    line = [sys.executable, "-m", "handtools", "-C", str(place.workspace), "view", *words]
    process = subprocess.Popen(
        line,
        cwd=place.outside,
        env=os.environ | env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    place.keep(process)
    return process


def _browser(place: Place) -> dict[str, str]:
    program = place.base / "browser"
    program.write_text("#!/bin/sh\nsleep 4\n")
    program.chmod(0o755)
    return {"BROWSER": f"{program} %s"}


async def link_in_the_process_list(place: Place) -> str | None:
    """The link with its token is an argument of the browser, which everybody on the machine can read."""
    with subprocess.Popen(_as_other(_IN_ARGUMENTS, "8"), cwd="/", stdout=subprocess.PIPE) as thief:
        await _view(place, **_browser(place))
        link = thief.communicate(timeout=20)[0].decode().strip()
    if link and os.geteuid() == 0:
        _run(_as_other(_IS_THE_PERSON, link, ""))
    return "the link is in the process list" if link else None


async def link_in_a_file_for_everybody(place: Place) -> str | None:
    """The link is handed to the browser in a file: nobody else may read it, and it leads nobody else in."""
    begun = place.base / "begun"
    begun.write_text("")
    await _view(place, **_browser(place))
    folders = [str(place.base), "/tmp", "/var/tmp", "/dev/shm", "/run/user"]
    readable = ["-newer", str(begun), "-type", "f", "-perm", "/044"]
    found: list[str] = []
    for _ in range(20):
        listed = subprocess.run(
            ["find", *folders, "-maxdepth", "5", *readable, "-size", "-64k"],
            capture_output=True,
            check=False,
        )
        for path in map(Path, listed.stdout.decode("utf-8", "replace").splitlines()):
            try:
                text = path.read_text("utf-8", "replace")
            except OSError:
                continue
            reachable = all(each.stat().st_mode & 0o011 for each in path.parents)
            if reachable and re.search(r"https?://127[\w.:]+/\S*token=[\w-]+", text):
                found.append(str(path))
        if found:
            break
        await place.until(lambda: False, 0.2)
    return f"the link is in {found[0]}, which everybody may read" if found else None


async def link_of_somebody_else(place: Place) -> str | None:
    """Another user has the link, from a shared log or over the shoulder, and follows it first."""
    if os.geteuid() != 0:
        return None  # only root can be two users
    link = await _link(place)
    said = _run(_as_other(_IS_THE_PERSON, link, ""))
    return "another user was let in by the link" if "read" in said else None


async def cookie_of_somebody_else(place: Place) -> str | None:
    """Another user has the person's cookie, and uses it beside them."""
    if os.geteuid() != 0:
        return None
    link = await _link(place)
    with urllib.request.urlopen(link, timeout=10) as answer:
        cookie = str(answer.headers["set-cookie"]).split(";")[0]
    said = _run(_as_other(_IS_THE_PERSON, link, cookie))
    return "another user was let in by the cookie" if "read" in said else None


async def _link(place: Place) -> str:
    """The link that the person is told; without one, these attacks prove nothing."""
    process = await _view(place, "--json")
    assert process.stdout is not None
    return json.loads(process.stdout.readline())["url"]  # type: ignore[no-any-return]
