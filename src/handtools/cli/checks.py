"""Checks: what this machine and this record offer, each with what follows and what to do."""

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Literal

from handtools.cli.opening import JOURNAL
from handtools.core.attempting import attempt
from handtools.core.errors import HostError

State = Literal["ok", "missing", "broken"]

CHECKED_BYTES = 64 << 20
"""A larger journal is read through only when that is asked for."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One row: how it is, what follows from it, and the next step where there is one."""

    name: str
    state: State
    told: str
    step: str = ""


def findings(root: Path, *, deep: bool) -> Iterator[Finding]:
    """Everything that is worth knowing, in the order of what breaks most."""
    from handtools.host.state import state_folder

    yield _workspace(root)
    yield from _installation(root)
    try:
        state = state_folder(root)
    except HostError as failure:
        yield Finding("state", "broken", str(failure), "Until then no call runs: none could be recorded.")
        yield from _programs(root)
        return
    yield Finding("state", "ok", f"{state}, {_size(_bytes_below(state))}")
    yield from _journal(root, state, deep=deep)
    yield _capture(root, state)
    yield from _kernel(root, state)
    yield from _sandbox(root)
    yield _web()
    yield from _programs(root)
    yield from _plugins()


def _workspace(root: Path) -> Finding:
    real = root.resolve()
    told = f"{real}, {_file_system(real)}"
    if os.access(real, os.W_OK):
        return Finding("workspace", "ok", told)
    return Finding(
        "workspace", "missing", f"{told}; it can't be written to", "Files can be read but not changed."
    )


def _installation(root: Path) -> Iterator[Finding]:
    """Whether our own program could be changed by what it is used on."""
    from handtools.host.installation import installed_in

    if folders := installed_in(root):
        told = f"handtools itself runs from the workspace ({', '.join(folders)}), where its code can be changed"
        held = f"{told}; commands that bubblewrap confines see it read-only, and tools ask"
        yield Finding("installation", "missing", held, "Install it outside: `uv tool install handtools`.")


def _journal(root: Path, state: Path, *, deep: bool) -> Iterator[Finding]:
    from handtools.toolbox import local_workspace

    file = state / JOURNAL
    if not file.exists():
        yield Finding("journal", "ok", "nothing is recorded yet")
        return
    journal = local_workspace(root).journal
    try:
        newest = journal.calls.page(limit=1)
        interrupted, waiting = journal.entries.open(), journal.calls.waiting()
    except HostError as failure:
        yield Finding("journal", "broken", str(failure), f"Look at {state}.")
        return
    finally:
        journal.close()
    if journal.healed:
        yield Finding("journal", "broken", journal.healed, "Nothing more: new calls are recorded again.")
        return
    yield _pages(file, newest[0].seq if newest else 0, deep=deep)
    if interrupted:
        told = f"interrupted or running changes: {len(interrupted)}"
        yield Finding(
            "recovery", "ok", f"{told}; the next call finishes or takes back what was interrupted"
        )
    if waiting:
        yield Finding(
            "approvals", "ok", f"calls that wait for an answer: {len(waiting)}", "handtools pending"
        )
    for kept in sorted(state.glob(f"{JOURNAL}.damaged-*[0-9]")):
        yield Finding(
            "old journal", "ok", f"{kept} was damaged and set aside", "Delete it when you are done."
        )


def _pages(file: Path, calls: int, *, deep: bool) -> Finding:
    """Read the journal through, where that is quick or wanted."""
    size = file.stat().st_size
    told = f"{calls:,} calls, {_size(size)}"
    if size > CHECKED_BYTES and not deep:
        return Finding("journal", "ok", f"{told}; opened, not read through", "handtools doctor --deep")
    try:
        connection = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)
        try:
            problem = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.Error as failure:
        problem = str(failure)
    if problem == "ok":
        return Finding("journal", "ok", f"{told}, read through")
    step = f"Move {file} away: files are untouched, a new journal is begun."
    return Finding("journal", "broken", f"{told}: {problem}", step)


def _kernel(root: Path, state: Path) -> Iterator[Finding]:
    from handtools.host import syscalls

    if syscalls.confines():
        yield Finding("openat2", "ok", "the kernel itself keeps paths inside the workspace")
    else:
        yield Finding("openat2", "missing", "paths are walked name by name instead: as safe, slower")
    elsewhere = root.stat().st_dev != state.stat().st_dev
    where = " (tried in the state folder, on another file system)" if elsewhere else ""
    with tempfile.TemporaryDirectory(dir=state) as folder:
        one, other = Path(folder, "one"), Path(folder, "other")
        one.touch()
        other.touch()
        failure = attempt(lambda: syscalls.exchange(None, str(one), str(other)))
        with one.open("rb") as file:
            leased = syscalls.lease(file.fileno()) == "held"
    if failure is None:
        yield Finding("renameat2", "ok", f"a file is exchanged for its new version in one moment{where}")
    else:
        yield Finding("renameat2", "missing", f"files are replaced by a plain rename{where}")
    if leased:
        yield Finding("leases", "ok", f"other writers are noticed while a file is replaced{where}")
    else:
        yield Finding(
            "leases", "missing", f"bytes are compared twice instead; the gap is smaller, not closed{where}"
        )


def _capture(root: Path, state: Path) -> Finding:
    """How what commands change is seen, and why not better."""
    from handtools.host.commands.overlay.preparing import problem
    from handtools.host.state import vault_folder
    from handtools.host.vault import Vault

    why = problem(root, Vault(vault_folder(root, state)))
    if not why:
        return Finding("capture", "ok", "layers: what a command changes is seen in full before it lands")
    told = f"{why} Instead the workspace is looked at before and after, and jobs are not captured."
    return Finding(
        "capture", "missing", told, "Allow user namespaces, or keep the state on this file system."
    )


def _sandbox(root: Path) -> Iterator[Finding]:
    """What confines commands, and why not something stronger."""
    from handtools.host.commands.runners.choosing import choose

    choice = choose(root=root)
    step = "" if choice.runner.confined else "Install bubblewrap, or allow user namespaces."
    yield Finding(
        "sandbox",
        "ok" if choice.runner.confined else "missing",
        f"{choice.runner.name}: {choice.runner.boundary}",
        step,
    )
    for passed in choice.passed:
        yield Finding(f"not {passed.name}", "missing", passed.reason)
    yield _container()


def _container() -> Finding:
    """Whether commands could run in a container, for those who ask for it."""
    from handtools.host.commands.runners.container import ContainerRunner

    runner = ContainerRunner()
    problem = runner.available()
    if problem:
        return Finding(
            "container", "missing", problem, "Only for those who want it: see docs/how-to/containers.md."
        )
    capture = "layers" if runner.layered else "looking before and after, and writes happen in place"
    return Finding("container", "ok", f"works with {runner.image}; changes are captured by {capture}")


def _web() -> Finding:
    """Whether pages can be fetched, and where searches go."""
    from handtools.host.web.engines.choosing import chosen
    from handtools.host.web.local_web import LocalWeb

    if missing := LocalWeb().missing:
        return Finding("web", "missing", "fetch and web_search are not offered", missing)
    try:
        engine = chosen(os.environ)
    except HostError as wrong:
        return Finding("web", "broken", f"web_search is not offered: {wrong}", "Look at the environment.")
    search = f"web_search asks {engine.adapter.name}" if engine else "no search engine is set up"
    return Finding("web", "ok", f"fetch; {search}")


def _programs(root: Path) -> Iterator[Finding]:
    from handtools.host.ripgrep_argv import RipgrepMissing, program

    try:
        yield Finding("rg", "ok", program(root).file)
    except RipgrepMissing as missing:
        yield Finding("rg", "missing", str(missing), "Until then nothing can be searched.")
    yield _servers()


def _servers() -> Finding:
    from handtools.host.language.servers import SERVERS

    found = [server.name for server in SERVERS if _which(server.command[0])]
    step = "`handtools doctor --language` has versions, and how to install others."
    if found:
        return Finding("servers", "ok", f"{', '.join(found)}: errors after a change, and lsp", step)
    return Finding("servers", "missing", "no language server is here: changes are not checked", step)


def _plugins() -> Iterator[Finding]:
    from handtools.toolbox import PLUGINS

    names = []
    for point in entry_points(group=PLUGINS):
        failure = attempt(point.load)
        if failure is None:
            names.append(point.name)
            continue
        package = point.dist.name if point.dist else point.value
        told = f"{point.name} ({point.value}): {type(failure).__name__}: {failure}"
        yield Finding("plugin", "broken", told, f"Update or remove {package}.")
    if names:
        yield Finding("plugins", "ok", ", ".join(names))


def _which(name: str) -> str | None:
    """Also beside this Python, where packages put their programs."""
    beside = str(Path(sys.executable).parent)
    return shutil.which(name, path=os.pathsep.join([beside, os.environ.get("PATH", "")]))


def _file_system(folder: Path) -> str:
    """The type of the file system that holds a folder, where the system says so."""
    best, found = "", "file system unknown"
    try:
        rows = Path("/proc/self/mounts").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return found
    for row in rows:
        _, mounted, kind, *_ = row.split(" ")
        # The last mount on a place is the one that counts.
        if folder.is_relative_to(mounted) and len(mounted) >= len(best):
            best, found = mounted, kind
    return found


def _bytes_below(folder: Path) -> int:
    total = 0
    for at, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(at, name)).st_size
            except FileNotFoundError:
                continue  # a store lets go of files at any time
    return total


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"
