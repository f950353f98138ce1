"""Notify the user of approval requests: desktop notification, terminal bell or a program they configured.

Notifications never delay a call or make it fail: programs run in the background and are killed after a
timeout.
"""

import contextlib
import json
import logging
import os
import sys
import threading
from pathlib import Path

from handtools.core.approval import Approval, Notify
from handtools.core.events import ApprovalAsked, Event
from handtools.host.programs import (
    DEVNULL,
    PIPE,
    Process,
    Program,
    find_program,
    is_outside_workspace,
    start_program,
    wait_or_kill,
)
from handtools.text.truncation import collapse_to_one_line
from handtools.text.visible_text import with_visible_characters

logger = logging.getLogger("handtools")

MAX_TITLE_CHARS = 200
MAX_RUNNING_PROGRAMS = 4
"""How many programs run at once. Requests beyond that aren't announced; `handtools pending` lists all."""
PROGRAM_SECONDS = 30.0
SUMMARY = "A call needs your approval"
_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_APPLESCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)


class ApprovalNotifier:
    """Toolbox listener that notifies the user of each call that waits for approval."""

    def __init__(self, notify: Notify, root: str | Path) -> None:
        self._notify = notify
        self._root = os.path.realpath(root)
        self._running = threading.BoundedSemaphore(MAX_RUNNING_PROGRAMS)

    def __call__(self, event: Event) -> None:
        """Notify the user of an unanswered approval request; ignore all other events."""
        if not isinstance(event, ApprovalAsked) or event.reply is not None:
            return
        if self._notify.bell:
            ring_terminal_bell()
        if self._notify.desktop:
            self._show_on_desktop(event.approval)
        if self._notify.command:
            self._run_command(event.approval)

    def _show_on_desktop(self, approval: Approval) -> None:
        told = shown_title(approval)
        if sys.platform == "darwin":
            script = [word for line in _APPLESCRIPT for word in ("-e", line)]
            name, arguments = "osascript", [*script, SUMMARY, told]
        else:
            # Desktops interpret the text as markup, including links and images.
            name, arguments = (
                "notify-send",
                ["--app-name=handtools", "--", SUMMARY, told.translate(_MARKUP)],
            )
        program = find_program(name, self._root)
        if program is None:
            logger.warning("Can't show a desktop notification: %s is not installed.", name)
            return
        self._start_program(program, arguments)

    def _run_command(self, approval: Approval) -> None:
        name, *arguments = self._notify.command
        program = _program_of_person(os.path.expanduser(name), self._root)
        if program is None:
            logger.warning("`notify.command`: no program %s found outside the workspace.", name)
            return
        question = {
            "call_id": approval.call_id,
            "title": shown_title(approval),
            "rule": collapse_to_one_line(with_visible_characters(approval.rule), MAX_TITLE_CHARS),
            "session": collapse_to_one_line(with_visible_characters(approval.session), MAX_TITLE_CHARS),
            "agent": collapse_to_one_line(with_visible_characters(approval.agent), MAX_TITLE_CHARS),
            "workspace": self._root,
        }
        self._start_program(program, arguments, json.dumps(question).encode())

    def _start_program(self, program: Program, arguments: list[str], given: bytes = b"") -> None:
        """Start a program with the user's environment; a background thread waits for it."""
        if not self._running.acquire(blocking=False):
            return
        try:
            process = start_program(
                program, arguments, env=os.environ, stdin=PIPE, stderr=DEVNULL, own_session=True
            )
        except OSError as problem:
            self._running.release()
            logger.warning("Can't start %s: %s.", program.name, problem.strerror)
            return
        # The data fits into the pipe buffer, so the write doesn't block even if the program never reads.
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.write(given)
                process.stdin.close()
        threading.Thread(
            target=self._wait_for_program, args=(process,), name="handtools-notify", daemon=True
        ).start()

    def _wait_for_program(self, process: Process) -> None:
        try:
            wait_or_kill(process, PROGRAM_SECONDS)
        finally:
            self._running.release()


def shown_title(approval: Approval) -> str:
    """Return a call's title as one short line without control characters that could affect the display."""
    return collapse_to_one_line(
        with_visible_characters(collapse_to_one_line(approval.title)), MAX_TITLE_CHARS
    )


def ring_terminal_bell() -> None:
    """Ring the bell of the terminal that this process belongs to, if it has one."""
    with contextlib.suppress(OSError):
        terminal = os.open("/dev/tty", os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            os.write(terminal, b"\a")
        finally:
            os.close(terminal)


def _program_of_person(name: str, root: str) -> Program | None:
    """Find a program by absolute path or by name on PATH, but not in the workspace: agents write there."""
    if not os.path.isabs(name):
        return find_program(name, root) if os.path.basename(name) == name else None
    file = os.path.realpath(name)
    usable = os.path.isfile(file) and os.access(file, os.X_OK) and is_outside_workspace(file, root)
    return Program(file, name) if usable else None
