"""After a change: the steps that follow when changes of a call have landed. None can take the change back."""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from handtools.core.changes import Change, ChangeSet
from handtools.core.content import Text
from handtools.core.errors import ToolError
from handtools.core.events import Reviewed
from handtools.core.language import Review
from handtools.core.result import Result
from handtools.core.reviewing import told
from handtools.runtime.guard import GuardedFiles, Landed
from handtools.runtime.guard_commands import hidden
from handtools.runtime.guard_language import visible
from handtools.text.clipping import clip
from handtools.text.diffing import unified
from handtools.text.encoding import decode, displayed

SECONDS = 3.0
"""How long servers may take to look at a change; what comes later is announced."""

FORMAT_SECONDS = 10.0
"""How long all the files of a call may take to be formatted."""
SHOWN_LINES, SHOWN_BYTES = 120, 8_000

Step = Callable[[GuardedFiles, float], Awaitable[str]]
"""Takes the files of a call and when its time is up; gives back what the model is told."""


async def after_change(result: Result[Any], files: GuardedFiles, deadline: float) -> Result[Any]:
    """The result with what the steps had to say; a call that only looked gets servers ready for what it saw."""
    if not files.changed:
        _warm(files)
        return result
    said = [await step(files, deadline) for step in STEPS]
    return result.settled(content=(*result.content, *(Text(each) for each in said if each)))


def net(landed: Sequence[Landed]) -> ChangeSet:
    """What several changes come to, as far as they are regular files whose bytes are known."""
    every: dict[str, Change] = {}
    again: set[str] = set()
    for change in (change for each in landed for change in each.changes):
        first = every.get(change.path)
        every[change.path] = change if first is None else Change(change.path, first.before, change.after)
        again |= {change.path} if first else set()
    # A single change is never nothing, and a large file takes long to compare.
    nothing = {path for path in again if every[path].before == every[path].after}
    return ChangeSet(
        tuple(change for path, change in every.items() if _plain(change) and path not in nothing)
    )


def _plain(change: Change) -> bool:
    nodes = [node for node in (change.before, change.after) if node is not None]
    return all(node.kind == "file" and node.known for node in nodes)


async def format_files(files: GuardedFiles, deadline: float) -> str:
    """Have the project's formatter at what a tool wrote; what it does is a change of its own, and is shown.

    Not at what a command wrote, nor at what an undo brought back: those are to stay as they are.
    """
    written = [each for each in files.changed if each.kind == "change" and each.coverage == "declared"]
    said: list[str] = []
    until = min(deadline, time.monotonic() + FORMAT_SECONDS)
    for change in net(written):
        if change.after is None or not files.workspace.formatters.formats(change.path):
            continue
        if time.monotonic() > until:
            said.append(f"{change.path}: not formatted: there was no time left.")
        else:
            said.append(await _formatted(files, change))
    return "\n".join(filter(None, said))


async def _formatted(files: GuardedFiles, change: Change) -> str:
    assert change.after is not None
    before, after = change.before.data if change.before else None, change.after.data
    formatters, private = files.workspace.formatters, hidden(files.gate.policy)
    done = await formatters.format(change.path, before, after, private=private)
    if done is None:
        return ""
    if done.data is None:
        return f"{change.path}: not formatted: {done.why}"
    formatting = ChangeSet.of(
        Change.of(change.path, before=after, after=done.data), note=f"formatted by {done.formatter}"
    )
    if files.gate.policy.decide(formatting, files.call.tool).verdict != "allow":
        return f"{change.path}: not formatted: that would need an approval of its own."
    try:
        await files.apply(formatting)
    except ToolError as refusal:
        return f"{change.path}: not formatted: {refusal.message}"
    diff = displayed(unified(change.path, decode(after).body, decode(done.data).body))
    shown = clip(diff, max_lines=SHOWN_LINES, max_bytes=SHOWN_BYTES, keep="head").text
    return f"{done.formatter} then formatted {change.path}:\n{shown}"


async def diagnose(files: GuardedFiles, deadline: float) -> str:
    """Ask language servers about the files as they are now."""
    language, policy = files.workspace.language, files.gate.policy
    changes = net(files.changed)
    if not any(language.speaks(change.path) for change in changes):
        return ""

    def late(review: Review) -> None:
        files.announce(Reviewed(files.call.id, visible(review, policy)))

    seconds = min(SECONDS, deadline - time.monotonic() - 0.1)
    review = await language.review(changes, private=hidden(policy), timeout=max(seconds, 0.0), late=late)
    return told(visible(review, policy))


def _warm(files: GuardedFiles) -> None:
    language = files.workspace.language
    for path in files.sights:
        if language.speaks(path):
            language.warm(path, private=hidden(files.gate.policy))


async def tell_links(files: GuardedFiles, deadline: float) -> str:  # noqa: ARG001
    """Say which files had other names: a hard link is broken on purpose, and not in silence."""
    told = (
        f"{path}: {count} other hard link{'s' if count > 1 else ''} to it still {'have' if count > 1 else 'has'} "
        "the old content."
        for path, count in files.linked.items()
    )
    return "\n".join(told)


STEPS: tuple[Step, ...] = (tell_links, format_files, diagnose)
