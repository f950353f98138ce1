"""Open a workspace for a CLI command: only its journal, or its toolbox as well."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from handtools.cli.terminal import CliCommandError, print_remark
from handtools.core.approval import Approval, Reply
from handtools.core.undo import is_change_number

if TYPE_CHECKING:
    from handtools.core.files import HostFiles
    from handtools.runtime.journal import Journal
    from handtools.runtime.journal.calls import Calls
    from handtools.runtime.journal.change_entries import ChangeEntries
    from handtools.toolbox import BlockingToolbox

JOURNAL_NAME = "journal.sqlite"


@dataclass(frozen=True, slots=True)
class WorkspaceJournal:
    """A workspace's journal and files for CLI commands, with a builder of suggested next commands."""

    path: Path
    """The workspace folder as given on the command line, not resolved."""
    journal: "Journal"
    files: "HostFiles"

    @property
    def calls(self) -> "Calls":
        """The journal's log of tool calls."""
        return self.journal.calls

    @property
    def entries(self) -> "ChangeEntries":
        """The journal's file changes."""
        return self.journal.entries

    def suggested_command(self, *words: str) -> str:
        """A `handtools` command line to suggest to the user as the next step.

        It includes `-C FOLDER` for each folder if the workspace is not the current folder.
        """
        from handtools.host.workspace_folders import workspace_folders

        folders = workspace_folders(self.path)
        named = [str(self.path)] if "" in folders else folders.values()
        where = [] if self.path == Path() else [word for folder in named for word in ("-C", folder)]
        return shlex.join(["handtools", *words, *where])

    def find_call_id(self, name: str) -> str:
        """The full id of the one recorded call that has this change number, id or id prefix.

        Raises `CliCommandError` if none or several match.
        """
        found = self.journal.calls_named(name)
        if not found:
            what = "change" if is_change_number(name) else "call"
            raise CliCommandError(
                f"No {what} `{name}` is recorded here.",
                f"`{self.suggested_command('log')}` lists the calls.",
            )
        if len(found) > 1:
            listed = ", ".join(self.calls.short(call_id) for call_id in found)
            raise CliCommandError(f"Several calls match `{name}`: {listed}.", "Give more of the id.")
        return found[0]


@contextmanager
def open_journal_at(path: Path) -> Iterator[WorkspaceJournal]:
    """Open the journal of a workspace without loading any tools, and close it at the end.

    Raises `CliCommandError` if nothing is recorded for the folder.
    """
    from handtools.local_journal import open_local_journal

    record = open_local_journal(path)
    if not Path(record.journal.path).exists():
        raise _nothing_recorded_error(path, Path(record.journal.path).parent)
    try:
        yield WorkspaceJournal(path, record.journal, record.files)
    finally:
        if record.journal.healed:
            print_remark(record.journal.healed)
        record.journal.close()


@contextmanager
def open_toolbox_at(
    path: Path, *, plugins: bool = False, yes: bool = False, runner: str = ""
) -> Iterator[tuple["BlockingToolbox", WorkspaceJournal]]:
    """Open a workspace's configured toolbox for a block, and close both at the end.

    `plugins` adds tools from installed packages, `yes` approves every call that needs approval.
    """
    from handtools.configuration import load_configuration
    from handtools.toolbox import BlockingToolbox, coding, everything

    make = everything if plugins else coding
    found = load_configuration(path)
    print_remark(*found.ignored)
    toolbox = make(
        path,
        policy=found.policy,
        settings=found.settings,
        runner=runner,
        approver=approve_all if yes else None,
    )
    try:
        yield (
            BlockingToolbox(toolbox),
            WorkspaceJournal(path, toolbox.workspace.journal, toolbox.workspace.files),
        )
    finally:
        # A review that still runs when Python exits would end with a traceback.
        toolbox.workspace.language.close()
        toolbox.workspace.journal.close()


async def approve_all(_: Approval) -> Reply:
    """Approve every call: the user who would be asked has typed the command."""
    return Reply(allow=True)


def _nothing_recorded_error(path: Path, state: Path) -> CliCommandError:
    """The error for a folder without a journal; suggests a parent folder that has one."""
    from handtools.host.workspace_folders import workspace_folders, workspace_id

    real = path.resolve()
    folders = workspace_folders(path)
    if "" not in folders:
        words = [word for folder in folders.values() for word in ("-C", folder)]
        return CliCommandError(
            f"No call is recorded for {' and '.join(folders.values())} together.",
            f"Make one with `{shlex.join(['handtools', *words, 'call', 'TOOL'])} …`.",
        )
    for above in real.parents:
        if (state.parent / workspace_id(above) / JOURNAL_NAME).exists():
            step = shlex.join(["-C", str(above)])
            return CliCommandError(f"No call is recorded for {real}.", f"{above} has a log: add `{step}`.")
    return CliCommandError(f"No call is recorded for {real}.", "Make one with `handtools call TOOL …`.")
