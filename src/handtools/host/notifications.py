"""Tell the person that a call waits for an answer: a note on the desktop, the terminal's bell, their own program.

No call waits for any of it, or fails by it: programs are started and left alone, and ended after a while. ADR 233.
"""

import contextlib
import json
import logging
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from handtools.core.approval import Approval
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
from handtools.text.truncation import one_line
from handtools.text.visible_text import with_visible_characters

logger = logging.getLogger("handtools")

MOST_TITLE_CHARS = 200
MOST_RUNNING_PROGRAMS = 4
"""Of more questions at a time only the first are told: a person looks at `handtools pending` anyway."""
PROGRAM_SECONDS = 30.0
SUMMARY = "A call waits for your answer"
_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_APPLESCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """How the person hears of a call that waits for an answer."""

    desktop: bool = False
    """Whether a note is shown on the desktop, by `notify-send` or `osascript`."""
    bell: bool = False
    """Whether the bell of the process's terminal is rung."""
    command: tuple[str, ...] = ()
    """A program and its arguments; it gets the question as one JSON object on standard input."""

    def __bool__(self) -> bool:
        return self.desktop or self.bell or bool(self.command)


class ApprovalNotifier:
    """Listener of a toolbox that tells the person about each call that is left waiting for an answer."""

    def __init__(self, notify: Notify, root: str | Path) -> None:
        self._notify = notify
        self._root = os.path.realpath(root)
        self._running = threading.BoundedSemaphore(MOST_RUNNING_PROGRAMS)

    def __call__(self, event: Event) -> None:
        """Tell about a question without an answer; all other events are left alone."""
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
            # Desktops read the text as markup, with links and pictures.
            name, arguments = (
                "notify-send",
                ["--app-name=handtools", "--", SUMMARY, told.translate(_MARKUP)],
            )
        program = find_program(name, self._root)
        if program is None:
            logger.warning("No note on the desktop: there is no %s here.", name)
            return
        self._start(program, arguments)

    def _run_command(self, approval: Approval) -> None:
        name, *arguments = self._notify.command
        program = _program_of_person(os.path.expanduser(name), self._root)
        if program is None:
            logger.warning("`notify.command`: there is no program %s outside the workspace.", name)
            return
        question = {
            "call_id": approval.call_id,
            "title": shown_title(approval),
            "rule": one_line(with_visible_characters(approval.rule), MOST_TITLE_CHARS),
            "session": one_line(with_visible_characters(approval.session), MOST_TITLE_CHARS),
            "agent": one_line(with_visible_characters(approval.agent), MOST_TITLE_CHARS),
            "workspace": self._root,
        }
        self._start(program, arguments, json.dumps(question).encode())

    def _start(self, program: Program, arguments: list[str], given: bytes = b"") -> None:
        """Start a program of the person's with their environment, and leave it to a thread of its own."""
        if not self._running.acquire(blocking=False):
            return
        try:
            process = start_program(
                program, arguments, env=os.environ, stdin=PIPE, stderr=DEVNULL, own_session=True
            )
        except OSError as problem:
            self._running.release()
            logger.warning("%s can't be started: %s.", program.name, problem.strerror)
            return
        # What fits into a pipe is taken at once, whether the program reads it or not.
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.write(given)
                process.stdin.close()
        threading.Thread(target=self._await, args=(process,), name="handtools-notify", daemon=True).start()

    def _await(self, process: Process) -> None:
        try:
            wait_or_kill(process, PROGRAM_SECONDS)
        finally:
            self._running.release()


def shown_title(approval: Approval) -> str:
    """What a call wants, as one short line without characters that could steer what shows it."""
    return one_line(with_visible_characters(one_line(approval.title)), MOST_TITLE_CHARS)


def ring_terminal_bell() -> None:
    """Ring the bell of the terminal that this process belongs to, if it has one."""
    with contextlib.suppress(OSError):
        terminal = os.open("/dev/tty", os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            os.write(terminal, b"\a")
        finally:
            os.close(terminal)


def _program_of_person(name: str, root: str) -> Program | None:
    """A program by its absolute path or its name on PATH; none in the workspace, where agents write."""
    if not os.path.isabs(name):
        return find_program(name, root) if os.path.basename(name) == name else None
    file = os.path.realpath(name)
    usable = os.path.isfile(file) and os.access(file, os.X_OK) and is_outside_workspace(file, root)
    return Program(file, name) if usable else None
