"""The checks of `handtools doctor`: machine, journal, language servers, MCP server and clients."""

import contextlib
import json
import os
import re
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from handtools.cli.open_workspace import JOURNAL_NAME
from handtools.cli.stats import bytes_below, format_size
from handtools.core.errors import HostError, UsageError, exception_raised_by

if TYPE_CHECKING:
    from handtools.configuration import Configuration

CheckState = Literal["ok", "missing", "broken"]

JOURNAL_FULL_CHECK_BYTES = 64 << 20
"""Largest journal file, in bytes, that `handtools doctor` checks page by page without `--deep`."""


@dataclass(frozen=True, slots=True)
class DoctorCheckResult:
    """Result of one check: name, state (ok, missing, broken), explanation and next step."""

    name: str
    state: CheckState
    told: str
    step: str = ""


def _ok_result(name: str, told: str, step: str = "") -> DoctorCheckResult:
    return DoctorCheckResult(name, "ok", told, step)


def _missing_result(name: str, told: str, step: str = "") -> DoctorCheckResult:
    return DoctorCheckResult(name, "missing", told, step)


def _broken_result(name: str, told: str, step: str) -> DoctorCheckResult:
    return DoctorCheckResult(name, "broken", told, step)


def machine_checks(root: Path, *, deep: bool) -> Iterator[DoctorCheckResult]:
    """Run the default checks: workspace, journal, kernel, sandbox, web, programs, plugins.

    `deep` also checks every page of a large journal.
    """
    from handtools.host.workspace_folders import state_folder

    yield _check_workspace(root)
    yield from _check_installation(root)
    try:
        state = state_folder(root)
    except HostError as failure:
        yield _broken_result(
            "state", str(failure), "No calls run until this is fixed: they can't be recorded."
        )
        yield from _check_programs(root)
        return
    yield _ok_result("state", f"{state}, {format_size(bytes_below(state))}")
    yield from _check_configuration(root)
    yield from _check_journal(root, state, deep=deep)
    yield _check_overlay_capture(root, state)
    yield from _check_kernel(root, state)
    yield from _check_sandbox(root)
    yield _check_web()
    yield from _check_programs(root)
    yield from _check_plugins()


def _check_workspace(root: Path) -> DoctorCheckResult:
    from handtools.host.files.syscalls import filesystem_type

    real = root.resolve()
    told = f"{real}, {filesystem_type(real) or 'file system unknown'}"
    if os.access(real, os.W_OK):
        return _ok_result("workspace", told)
    return _missing_result("workspace", f"{told}; it is not writable", "Files can be read but not changed.")


def _check_installation(root: Path) -> Iterator[DoctorCheckResult]:
    """Warn if handtools is installed inside the workspace, where tools could change its code."""
    from handtools.host.programs import installation_folders_in_workspace

    if folders := installation_folders_in_workspace(root):
        told = (
            f"handtools is installed inside the workspace ({', '.join(folders)}), where its code can change"
        )
        held = f"{told}; it is read-only for commands in bubblewrap, and tools need approval to change it"
        yield _missing_result(
            "installation", held, "Install it outside the workspace: `uv tool install handtools`."
        )


SHOWN_HIDDEN_PROGRAMS = 6


def _check_configuration(root: Path) -> Iterator[DoctorCheckResult]:
    """Report the configuration files in force, the policy, and programs on PATH that commands can't see."""
    from handtools.configuration import load_configuration

    try:
        found = load_configuration(root)
    except UsageError as problem:
        yield _broken_result("configuration", str(problem), "No calls run until this is fixed.")
        return
    yield _ok_result("settings", _settings_in_words(found))
    yield _ok_result("policy", _policy_in_words(found))
    projects = [str(source.file) for source in found.sources if source.project]
    if projects:
        state: CheckState = "missing" if found.ignored else "ok"
        told = " ".join(found.ignored) or f"{', '.join(projects)} tightens both"
        yield DoctorCheckResult("project", state, told)
    yield from _check_search_path(root, found)


def _settings_in_words(configuration: "Configuration") -> str:
    from handtools.configuration import COMMAND_LIMIT_KEYS, UNLIMITED

    settings = configuration.settings
    said = [
        f"{field.name} {value.rpartition('@')[2] if isinstance(value, str) else ', '.join(value) or 'none'}"
        for field in fields(settings)
        if field.name not in {"limits", "notify"}
        and (value := getattr(settings, field.name)) not in {"", (), None}
    ]
    limits = [
        f"{key} {getattr(settings.limits, name):,}"
        for key, name in COMMAND_LIMIT_KEYS.items()
        if getattr(settings.limits, name) != getattr(UNLIMITED, name)
    ]
    told = [*said, *([f"limits: {', '.join(limits)}"] if limits else [])]
    return "; ".join([_files_in_words(configuration, "no config.toml: defaults"), *told])


def _files_in_words(configuration: "Configuration", none: str, *, policy: bool = False) -> str:
    """List the user's configuration files, or with `policy` those that set policy keys; or return `none`."""
    from handtools.configuration.schema import POLICY_KEYS

    files = [
        str(source.file)
        for source in configuration.sources
        if not source.project and (bool(source.keys & set(POLICY_KEYS)) if policy else source.keys)
    ]
    return ", ".join(files) or none


def _policy_in_words(configuration: "Configuration") -> str:
    from handtools.runtime.policy import DEFAULTS

    policy = configuration.policy
    confined = policy.defaults.get("run", "allow in a sandbox, otherwise ask")
    verdicts = {kind: policy.default_verdict(kind) for kind in DEFAULTS} | {"run": confined}
    told = [_files_in_words(configuration, "no policy configured: defaults", policy=True)]
    told.append("if no rule matches: " + ", ".join(f"{kind} {word}" for kind, word in verdicts.items()))
    told.append("rules: " + ", ".join(rule.name for rule in policy.rules))
    told += [f"hosts: {', '.join(policy.hosts)}"] if policy.hosts else []
    told += [f"ports: {', '.join(policy.ports)}"] if policy.ports else []
    told += [f"not offered: {', '.join(policy.block)}"] if policy.block else []
    told += [f"hidden: {', '.join(policy.excluded)}"] if policy.excluded else []
    return "; ".join([*told, f"unattended: {policy.unattended}"])


def _check_search_path(root: Path, configuration: "Configuration") -> Iterator[DoctorCheckResult]:
    """Run a command to compare the programs on PATH with those that commands can see."""
    from handtools.host.sandbox.environment_variables import command_environment
    from handtools.host.workspace_folders import state_folder

    environment = command_environment({}, frozenset(), terminal=False, path=configuration.settings.path)
    folders = list(dict.fromkeys(filter(None, environment["PATH"].split(os.pathsep))))
    yield _ok_result("PATH", os.pathsep.join(folders))
    try:
        # A temporary state folder, so that the check leaves nothing behind.
        with tempfile.TemporaryDirectory(dir=state_folder(root), ignore_cleanup_errors=True) as state:
            seen = _program_names_seen_by_command(root, configuration, state)
    except HostError as failure:
        yield _broken_result("PATH in commands", str(failure), "No commands run until this is fixed.")
        return
    for folder in folders:
        there = set(_program_names_in_folder(folder))
        hidden = sorted(there - seen.get(folder, set()))
        if hidden:
            more = f" and {len(hidden) - SHOWN_HIDDEN_PROGRAMS:,} more"
            named = ", ".join(hidden[:SHOWN_HIDDEN_PROGRAMS])
            told = f"{folder}: commands can't see {len(hidden):,} of {len(there):,} programs: {named}"
            yield _missing_result(
                "hidden from commands",
                told + (more if len(hidden) > SHOWN_HIDDEN_PROGRAMS else ""),
                "Add the folder, or the targets of its symlinks, to `readable`: `handtools config edit`.",
            )


def _program_names_in_folder(folder: str) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if os.path.isfile(entry.path) and os.access(entry.path, os.X_OK):
                yield entry.name


LIST_PROGRAMS_SCRIPT = r"""
IFS=:
for folder in $PATH; do for file in "$folder"/* "$folder"/.[!.]*; do
    [ -f "$file" ] && [ -x "$file" ] && printf '%s\0' "$file"
done; done
"""


def _program_names_seen_by_command(
    root: Path, configuration: "Configuration", state: str
) -> dict[str, set[str]]:
    """The names of the programs that a command finds in each folder on its PATH."""
    from functools import partial

    import anyio

    from handtools.core.call import Call
    from handtools.core.commands import Command
    from handtools.toolbox import local_workspace

    workspace = local_workspace(root, state=state, settings=configuration.settings)
    call = Call(tool="bash", args={}, session="handtools-doctor")
    command = Command(script=LIST_PROGRAMS_SCRIPT)
    try:
        ran = anyio.run(
            partial(
                workspace.commands.run,
                command,
                call=call,
                show=lambda _: None,
                private_globs=(),
                read_only_globs=(),
            )
        )
        ran.discard()
        kept = ran.exit.output.kept
        listed = workspace.output_store.get(kept) if kept else ran.exit.output.head
    finally:
        workspace.commands.close()
        workspace.journal.close()
    seen: dict[str, set[str]] = {}
    for path in filter(None, os.fsdecode(listed).split("\0")):
        folder, _, name = path.rpartition("/")
        seen.setdefault(folder, set()).add(name)
    return seen


def _check_journal(root: Path, state: Path, *, deep: bool) -> Iterator[DoctorCheckResult]:
    from handtools.toolbox import local_workspace

    file = state / JOURNAL_NAME
    if not file.exists():
        yield _ok_result("journal", "nothing is recorded yet")
        return
    journal = local_workspace(root).journal
    try:
        newest = journal.calls.page(limit=1)
        interrupted, waiting = journal.entries.open(), journal.calls.waiting()
    except HostError as failure:
        yield _broken_result("journal", str(failure), f"Inspect {state}.")
        return
    finally:
        journal.close()
    if journal.healed:
        yield _broken_result("journal", journal.healed, "Nothing to do: new calls are recorded again.")
        return
    yield _check_journal_pages(file, newest[0].seq if newest else 0, deep=deep)
    if interrupted:
        told = f"interrupted or running changes: {len(interrupted)}"
        yield _ok_result("recovery", f"{told}; the next call completes or reverts interrupted changes")
    if waiting:
        yield _ok_result("approvals", f"calls waiting for approval: {len(waiting)}", "handtools pending")
    for kept in sorted(state.glob(f"{JOURNAL_NAME}.damaged-*[0-9]")):
        yield _ok_result(
            "old journal", f"{kept} was damaged and set aside", "Delete it if you don't need it."
        )


def _check_journal_pages(file: Path, calls: int, *, deep: bool) -> DoctorCheckResult:
    """Check the journal database with SQLite's `quick_check`; skip a large file unless `deep` is set."""
    size = file.stat().st_size
    told = f"{calls:,} calls, {format_size(size)}"
    if size > JOURNAL_FULL_CHECK_BYTES and not deep:
        return _ok_result("journal", f"{told}; opened, pages not checked", "handtools doctor --deep")
    try:
        connection = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)
        try:
            problem = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.Error as failure:
        problem = str(failure)
    if problem == "ok":
        return _ok_result("journal", f"{told}, all pages checked")
    step = f"Move {file} away. Your files are not affected, and a new journal is started."
    return _broken_result("journal", f"{told}: {problem}", step)


def _check_kernel(root: Path, state: Path) -> Iterator[DoctorCheckResult]:
    from handtools.host.files import syscalls
    from handtools.host.linux_feature_fallbacks import SYSTEM_PARTS

    if syscalls.has_openat2():
        yield _ok_result("openat2", "the kernel keeps paths inside the workspace")
    for part in SYSTEM_PARTS:
        if part.is_missing is not None and part.is_missing():
            yield _missing_result(part.name, part.sentence)
    elsewhere = root.stat().st_dev != state.stat().st_dev
    where = " (tried in the state folder, on another file system)" if elsewhere else ""
    with tempfile.TemporaryDirectory(dir=state) as folder:
        one, other = Path(folder, "one"), Path(folder, "other")
        one.touch()
        other.touch()
        failure = exception_raised_by(lambda: syscalls.rename_exchange(None, str(one), str(other)))
        with one.open("rb") as file:
            leased = syscalls.try_read_lease(file.fileno()) == "held"
    told = {
        "renameat2": (failure is None, "files are replaced atomically by exchange"),
        "leases": (leased, "other writers are detected while a file is replaced"),
    }
    for part in SYSTEM_PARTS:
        if part.check in told:
            works, sentence = told[part.check]
            said = sentence if works else part.sentence
            yield DoctorCheckResult(part.check, "ok" if works else "missing", f"{said}{where}")


def _check_overlay_capture(root: Path, state: Path) -> DoctorCheckResult:
    """Check whether overlay file systems can capture commands' changes; if not, report the reason."""
    from handtools.host.files.backups import FolderBackups
    from handtools.host.sandbox.overlay.overlay_capture import overlay_problem
    from handtools.host.workspace_folders import backups_folder

    why = overlay_problem(root, FolderBackups(backups_folder(root, state)))
    if not why:
        return _ok_result(
            "capture", "overlay: all changes of a command are checked before they are applied"
        )
    told = f"{why} Instead, the workspace is compared before and after, and jobs are not captured."
    return _missing_result("capture", told, "Allow user namespaces, or keep the state on this file system.")


def _check_sandbox(root: Path) -> Iterator[DoctorCheckResult]:
    """Report the sandbox that commands run in, and why each stronger one is not available."""
    from handtools.host.sandbox.passed_probes import forget_passed_probes
    from handtools.host.sandbox.processes.supervisor_client import has_supervisors
    from handtools.host.sandbox.runners.runner_selection import choose_runner

    forget_passed_probes()
    try:
        choice = choose_runner(wanted=_configured_runner_name(root), root=root)
    except HostError as failure:
        step = f"No commands run until this is fixed. {_step_to_change_runner()}"
        yield _broken_result("sandbox", str(failure), step)
        yield _check_container_runner()
        return
    finally:
        forget_passed_probes()
    step = "Install bubblewrap, or allow user namespaces."
    if not has_supervisors():
        step = "Use a container engine if possible: --runner container."
    step = "" if choice.runner.confined else step
    yield DoctorCheckResult(
        "sandbox",
        "ok" if choice.runner.confined else "missing",
        f"{choice.runner.name}: {choice.runner.boundary}",
        step,
    )
    for passed in choice.skipped_runners:
        if passed.name == "container":
            continue  # it has its own check
        yield _missing_result(f"not {passed.name}", passed.reason)
    yield _check_container_runner()


def _configured_runner_name(root: Path) -> str:
    """The runner set in the environment or the settings; empty to use the strongest one available."""
    from handtools.configuration import load_configuration
    from handtools.toolbox import RUNNER_VARIABLE

    try:
        return os.environ.get(RUNNER_VARIABLE, "") or load_configuration(root).settings.runner
    except UsageError:
        return ""


def _step_to_change_runner() -> str:
    from handtools.toolbox import RUNNER_VARIABLE

    if os.environ.get(RUNNER_VARIABLE):
        return f"Unset {RUNNER_VARIABLE}, or set it to another runner."
    return "Remove or change `runner` in your configuration: `handtools config edit`."


def _check_container_runner() -> DoctorCheckResult:
    """Check whether commands can run in a container (Docker, Podman), which is optional."""
    from handtools.host.sandbox.runners.container import ContainerRunner

    runner = ContainerRunner()
    problem = runner.unavailable_reason()
    if problem:
        return _missing_result("container", problem, "Optional: only needed for --runner container.")
    capture = (
        "overlay" if runner.can_mount_overlay else "comparing before and after, and writes happen in place"
    )
    return _ok_result("container", f"works with {runner.image}; changes are captured by {capture}")


def _check_web() -> DoctorCheckResult:
    """Check whether web pages can be fetched and which search engine is configured."""
    from handtools.host.web.local_web import LocalWeb
    from handtools.host.web.search_engines import configured_engine

    if missing := LocalWeb().missing:
        return _missing_result("web", "fetch and web_search are not offered", missing)
    try:
        engine = configured_engine(os.environ)
    except HostError as wrong:
        return _broken_result(
            "web", f"web_search is not offered: {wrong}", "Check the environment variables."
        )
    search = f"web_search uses {engine.adapter.name}" if engine else "no search engine is configured"
    return _ok_result("web", f"fetch; {search}")


def _check_programs(root: Path) -> Iterator[DoctorCheckResult]:
    from handtools.host.search.ripgrep_process import RipgrepMissing, find_ripgrep

    try:
        yield _ok_result("rg", find_ripgrep(root).file)
    except RipgrepMissing as missing:
        yield _missing_result("rg", str(missing), "Searching does not work until this is fixed.")
    yield _check_language_servers()


def _check_language_servers() -> DoctorCheckResult:
    from handtools.host.language.servers import LANGUAGE_SERVERS

    found = [server.name for server in LANGUAGE_SERVERS if _find_program(server.command[0])]
    step = "`handtools doctor --language` shows versions, and how to install more."
    if found:
        return _ok_result(
            "servers", f"{', '.join(found)}: diagnostics after changes, and the lsp tool", step
        )
    return _missing_result("servers", "no language server found: changes are not checked", step)


def _check_plugins() -> Iterator[DoctorCheckResult]:
    from handtools.toolbox import PLUGIN_GROUP

    names = []
    for point in entry_points(group=PLUGIN_GROUP):
        failure = exception_raised_by(point.load)
        if failure is None:
            names.append(point.name)
            continue
        package = point.dist.name if point.dist else point.value
        told = f"{point.name} ({point.value}): {type(failure).__name__}: {failure}"
        yield _broken_result("plugin", told, f"Update or remove {package}.")
    if names:
        yield _ok_result("plugins", ", ".join(names))


def _find_program(name: str) -> str | None:
    """Find a program on the PATH or next to the running Python interpreter, where pip installs scripts."""
    beside = str(Path(sys.executable).parent)
    return shutil.which(name, path=os.pathsep.join([beside, os.environ.get("PATH", "")]))


def language_checks(root: Path) -> Iterator[DoctorCheckResult]:
    """Check every supported language server: its version, or how to install it.

    Installed servers come first; none is started.
    """
    from handtools.host.language.local_language import LANGUAGE_SWITCH_VARIABLE, LocalLanguage
    from handtools.host.language.servers import UNCONFINED_SERVERS_NOTE
    from handtools.host.sandbox.runners.runner_selection import choose_runner

    runner = choose_runner(root=root).runner
    if not runner.confined:
        yield _missing_result("sandbox", UNCONFINED_SERVERS_NOTE, "handtools doctor")
    # The cache folder is never written: this only queries versions and starts no server.
    language = LocalLanguage(root, cache=root, runner=lambda: runner)
    for speaker in sorted(language.known_servers(), key=lambda each: not each.version):
        languages = ", ".join(speaker.languages)
        if speaker.program and not speaker.version:
            told = f"{languages}: {speaker.program} exists, but does not run"
            yield _missing_result(speaker.name, told, speaker.install)
        elif speaker.program:
            yield _ok_result(speaker.name, f"{languages}: {speaker.version}", speaker.program)
        else:
            yield _missing_result(speaker.name, languages, speaker.install)
    if os.environ.get(LANGUAGE_SWITCH_VARIABLE, "").lower() == "off":
        yield _missing_result(
            "switch",
            f"{LANGUAGE_SWITCH_VARIABLE} is off: no server is used",
            f"unset {LANGUAGE_SWITCH_VARIABLE}",
        )


SERVER_START_SECONDS = 20.0
SLOW_START_SECONDS = 3.0
INITIALIZE_MESSAGES: tuple[dict[str, Any], ...] = (
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "handtools doctor", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
)


def mcp_checks(root: Path) -> Iterator[DoctorCheckResult]:
    """Run the checks of `handtools doctor --mcp`.

    They cover the mcp package, a test start of the MCP server, and each client's configuration.
    """
    package = _check_mcp_package()
    yield package
    if package.state == "ok":
        yield _check_server_start(root)
        yield _check_text_reaches_client()
    yield _check_mcp_sandbox()
    yield from _check_installed_clients(root)


def _check_mcp_package() -> DoctorCheckResult:
    try:
        return _ok_result("mcp package", f"mcp {version('mcp')}")
    except PackageNotFoundError:
        return _broken_result("mcp package", "not installed", "pip install 'handtools-slim[mcp]'")


def _check_server_start(root: Path) -> DoctorCheckResult:
    """Start the MCP server as a client would, list its tools, and report failure or a slow start."""
    # Clients wait for tools/list; resources/list also checks that the code that runs tools loads.
    listed, loaded = _responses_of_test_server(root, "tools/list", "resources/list")
    if "tools" not in listed.result or "resources" not in loaded.result:
        said = loaded.last_words or "it printed nothing"
        return _broken_result("server", f"it does not start: {said}", f"Try: handtools mcp {root}")
    told = f"{len(listed.result['tools'])} tools, listed after {listed.seconds:.1f} s"
    if listed.seconds > SLOW_START_SECONDS:
        return _missing_result("server", f"{told}, which is slow", "Some clients wait only a few seconds.")
    return _ok_result("server", told)


def _check_text_reaches_client() -> DoctorCheckResult:
    """Start a test server and check that a `read` result has the text in every field that clients may use."""
    line = f"read by handtools doctor {uuid.uuid4()}"
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "folder")
        root.mkdir()
        root.joinpath("line.txt").write_text(f"{line}\n", "utf-8")
        call = {"name": "read", "arguments": {"path": "line.txt"}}
        (read,) = _responses_of_test_server(
            root, "tools/call", params=call, HANDTOOLS_STATE=str(Path(place, "state"))
        )
    shown = [name for name in ("content", "structuredContent") if name in read.result]
    lost = [name for name in shown if line not in json.dumps(read.result[name])]
    if lost or not shown:
        told = f"a file's text is missing in {lost[0]}" if lost else f"`read` failed: {read.last_words}"
        return _broken_result("text", told, "pip install --upgrade handtools, then restart the client.")
    return _ok_result("text", "file text reaches the model, whichever field a client forwards")


@dataclass(frozen=True, slots=True)
class _ServerAnswer:
    """The test server's response to one request, how long it took, and the last line on stderr."""

    result: dict[str, Any]
    seconds: float
    """Seconds from the start of the server process to this response."""
    last_words: str = ""


def _responses_of_test_server(
    root: Path, *methods: str, params: dict[str, Any] | None = None, **environment: str
) -> list[_ServerAnswer]:
    """Start `handtools mcp` as a child process, send it requests over stdin, and return its responses.

    The process is killed at the end, or after `SERVER_START_SECONDS`.
    """
    from handtools.host.programs import PIPE, Program, start_program

    words = ["-P", "-m", "handtools", "mcp", str(root.resolve())]
    asked = [
        {"id": number, "method": name, "params": params or {}} for number, name in enumerate(methods, 2)
    ]
    lines = "".join(
        json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in (*INITIALIZE_MESSAGES, *asked)
    )
    began, answers = time.perf_counter(), []
    with start_program(
        Program(sys.executable, sys.executable),
        words,
        cwd=os.curdir,
        env=os.environ | environment,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    ) as child:
        # Kill a server that does not respond, so that `doctor` does not hang.
        late = threading.Timer(SERVER_START_SECONDS, child.kill)
        late.start()
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(lines.encode())
            child.stdin.flush()
        child.stdout.readline()  # the response to `initialize`
        for _ in methods:
            line = child.stdout.readline()
            result = json.loads(line).get("result", {}) if line.startswith(b"{") else {}
            answers.append(_ServerAnswer(result, time.perf_counter() - began))
        late.cancel()
        child.kill()
        said = child.stderr.read().decode(errors="replace").strip().splitlines()
    return [replace(answer, last_words=said[-1]) if said else answer for answer in answers]


def _check_mcp_sandbox() -> DoctorCheckResult:
    if shutil.which("bwrap"):
        return _ok_result("sandbox", "commands run in bubblewrap")
    return _missing_result(
        "sandbox",
        "bubblewrap is not installed: commands are less confined; see `handtools doctor`",
        "apt install bubblewrap",
    )


def _check_installed_clients(root: Path) -> Iterator[DoctorCheckResult]:
    from handtools.mcp.clients.client_setup import (
        ENTRY_NAME,
        KNOWN_CLIENTS,
        client_tools_are_disabled,
        read_config,
    )
    from handtools.mcp.clients.config_edits import config_value_text

    folder = root.resolve()
    for client in KNOWN_CLIENTS.values():
        file = client.file(folder)
        try:
            entry = config_value_text(client.shape, read_config(file) or "", client.keys)
            off = client_tools_are_disabled(client, folder)
        except (OSError, UnicodeDecodeError, UsageError):
            continue
        if entry is None:
            continue
        program = _program_of_server_entry(entry)
        if program and shutil.which(program) is None:
            starts = f"{file} starts {program}, which is not"
            if "/" in program:
                yield _broken_result(
                    client.title, f"{starts} installed", f"handtools install {client.name}"
                )
            else:
                yield _missing_result(
                    client.title, f"{starts} on the PATH here", f"uv tool install {ENTRY_NAME}"
                )
        else:
            own = "; its own file and shell tools are off" if off else ""
            yield _ok_result(client.title, f"set up in {file}{own}")


def _program_of_server_entry(entry: str) -> str:
    """The program that our MCP server entry starts, found by a regex in its JSON, TOML or YAML; or empty."""
    found = re.search(r'"?(?:command|cmd)"?\s*[:=]\s*\[?\s*("(?:[^"\\]|\\.)*")', entry)
    return str(json.loads(found[1])) if found else ""
