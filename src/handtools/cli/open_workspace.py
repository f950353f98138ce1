"""Open a workspace: from the folder that a person names to its toolbox and its record of calls."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from handtools.cli.terminal import CommandStopped, print_remark
from handtools.core.approval import Approval, Reply

if TYPE_CHECKING:
    from handtools.core.files import HostFiles
    from handtools.runtime.journal import Journal
    from handtools.runtime.journal.calls import Calls
    from handtools.runtime.journal.change_entries import ChangeEntries
    from handtools.toolbox import BlockingToolbox

JOURNAL_NAME = "journal.sqlite"


@dataclass(frozen=True, slots=True)
class WorkspaceRecord:
    """What is remembered of a folder, and the words to go on with."""

    path: Path
    """As the person wrote it."""
    journal: "Journal"
    files: "HostFiles"

    @property
    def calls(self) -> "Calls":
        """The log."""
        return self.journal.calls

    @property
    def entries(self) -> "ChangeEntries":
        """What was changed."""
        return self.journal.entries

    def step(self, *words: str) -> str:
        """A command to type next, for this same folder."""
        where = [] if self.path == Path() else ["-C", str(self.path)]
        return shlex.join(["handtools", *words, *where])

    def named(self, name: str) -> str:
        """The id of the one call whose id begins so."""
        found = self.calls.starting(name)
        if not name or not found:
            raise CommandStopped(
                f"No call `{name}` is recorded here.", f"`{self.step('log')}` lists the calls."
            )
        if len(found) > 1 and found[0] != name:
            listed = ", ".join(self.calls.short(call_id) for call_id in found)
            raise CommandStopped(f"Several calls begin with `{name}`: {listed}.", "Give more of the id.")
        return found[0]


@contextmanager
def open_record_at(path: Path) -> Iterator[WorkspaceRecord]:
    """The record of a folder, to look at: no tool is loaded for that."""
    from handtools.local_journal import open_local_journal

    record = open_local_journal(path)
    if not Path(record.journal.path).exists():
        raise _nothing_recorded(path, Path(record.journal.path).parent)
    try:
        yield WorkspaceRecord(path, record.journal, record.files)
    finally:
        if record.journal.healed:
            print_remark(record.journal.healed)
        record.journal.close()


@contextmanager
def open_toolbox_at(
    path: Path, *, plugins: bool = False, yes: bool = False, runner: str = ""
) -> Iterator[tuple["BlockingToolbox", WorkspaceRecord]]:
    """The tools of a folder and its record; `yes` answers everything that is asked."""
    from handtools.toolbox import BlockingToolbox, coding, everything, load_policy

    make = everything if plugins else coding
    policy = load_policy(path)
    toolbox = make(path, policy=policy, runner=runner, approver=_approve_all if yes else None)
    try:
        yield (
            BlockingToolbox(toolbox),
            WorkspaceRecord(path, toolbox.workspace.journal, toolbox.workspace.files),
        )
    finally:
        toolbox.workspace.journal.close()


async def _approve_all(_: Approval) -> Reply:
    return Reply(allow=True)


def _nothing_recorded(path: Path, state: Path) -> CommandStopped:
    """Says so, and where there is a record when a folder above has one."""
    from handtools.host.files.user_folders import workspace_id

    real = path.resolve()
    for above in real.parents:
        if (state.parent / workspace_id(above) / JOURNAL_NAME).exists():
            step = shlex.join(["-C", str(above)])
            return CommandStopped(
                f"No call is recorded for {real}.", f"{above} has a record: add `{step}`."
            )
    return CommandStopped(f"No call is recorded for {real}.", "`handtools call TOOL …` makes one.")
