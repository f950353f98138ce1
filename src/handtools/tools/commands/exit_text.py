"""Result lines about a finished command: the files that it changed, and notes."""

from handtools.core.changes import RecordedChanges
from handtools.core.commands import CommandExit
from handtools.core.search import Search
from handtools.text.changed_files import ChangedFile, changed_files_text


async def changes_and_notes(search: Search, command_exit: CommandExit) -> list[str]:
    """Return the line about changed files, if any, and the notes of a finished command."""
    lines = [f"({note})" for note in command_exit.notes]
    if command_exit.discarded:
        return [f"None of its changes were applied. {command_exit.discarded}", *lines]
    if command_exit.changes is not None:
        return [f"Files: {await changes_text(search, command_exit.changes)}.", *lines]
    return lines


async def changes_text(search: Search, changes: RecordedChanges) -> str:
    """Return the changed files as a sentence without a final period; ignored files are only counted."""
    ignored = await search.find_ignored_paths([each.path for each in changes.touched])
    return changed_files_text([ChangedFile(each.action, each.path) for each in changes.touched], ignored)
