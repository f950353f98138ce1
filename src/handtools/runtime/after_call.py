"""Steps after a tool has run: format files, get diagnostics, add AGENTS.md and skill notes, limit the output."""

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from handtools.core.backups_locks_and_store import Store
from handtools.core.call import Call, output_file_name
from handtools.core.changes import Change, ChangeSet
from handtools.core.effects import ReadEffect
from handtools.core.errors import HostError, ToolError
from handtools.core.events import Reviewed
from handtools.core.result import ContentBlock, Result, SpilledOutput, Text
from handtools.core.skills import GUIDE_FILE, Skill
from handtools.core.undo import PERSON_AGENT_NAME
from handtools.runtime.guards.files import OUTPUT_SCHEME, GuardedFiles, retry_while_links_change
from handtools.text.changed_files import enclosing_derived_folder
from handtools.text.encoding import decode, without_surrogates
from handtools.text.truncation import clip_text

if TYPE_CHECKING:
    from handtools.core.language import DiagnosticReview

DIAGNOSE_SECONDS = 3.0
"""Seconds to wait for language server diagnostics; those that come later are announced as an event."""

FORMAT_SECONDS = 10.0
"""Time limit for formatting all files of a call, in seconds."""
SHOWN_DIFF_LINES, SHOWN_DIFF_BYTES = 120, 8_000

AfterChangeStep = Callable[[GuardedFiles, float], Awaitable[str]]
"""A step after a call has changed files: takes files and deadline, returns text for the model."""


async def after_change(result: Result[Any], files: GuardedFiles, deadline: float) -> Result[Any]:
    """Add the change number, which undo accepts, and the texts of the after-change steps to a result.

    If the call changed nothing, start language servers for the files it read.
    """
    if not files.transactions:
        _warm_servers(files)
        return result
    said = [await step(files, deadline) for step in AFTER_CHANGE_STEPS]
    numbered = _with_last_line(result.content, f"(Change {files.recorded_changes[0].entry}.)")
    return result.with_fields(content=(*numbered, *(Text(each) for each in said if each)))


def _with_last_line(content: Sequence[ContentBlock], line: str) -> list[ContentBlock]:
    """Append a line to the last block if that is text, because clients join separate blocks differently."""
    *before, last = content
    if not isinstance(last, Text):
        return [*content, Text(line)]
    ended = last.text.removesuffix("\n")
    return [*before, Text(f"{ended}\n{line}" if ended else line)]


def net_changes(changes: Iterable[Change]) -> ChangeSet:
    """The net effect of consecutive changes; only for regular files whose bytes are known."""
    all_changes: dict[str, Change] = {}
    again: set[str] = set()
    for change in changes:
        first = all_changes.get(change.path)
        all_changes[change.path] = (
            change if first is None else Change(change.path, first.before, change.after)
        )
        again |= {change.path} if first else set()
    # Compare only paths that changed more than once: a single change always has an effect, and comparing is slow.
    nothing = {path for path in again if all_changes[path].before == all_changes[path].after}
    return ChangeSet(
        tuple(
            change for path, change in all_changes.items() if _is_known_file(change) and path not in nothing
        )
    )


def _is_known_file(change: Change) -> bool:
    nodes = [node for node in (change.before, change.after) if node is not None]
    return all(node.kind == "file" and node.known for node in nodes)


async def format_files(files: GuardedFiles, deadline: float) -> str:
    """Run the project's formatter on files that a tool wrote, record the result as a change and return the diff.

    Files written by commands, or restored by an undo or a review, are not formatted.
    """
    own = [each for each in files.transactions if each.kind == "change" and each.coverage == "declared"]
    written = [each for each in own if not each.exact]
    said: list[str] = []
    until = min(deadline, time.monotonic() + FORMAT_SECONDS)
    for change in net_changes(change for each in written for change in each.changes):
        if change.after is None or not files.workspace.formatters.formats(change.path):
            continue
        if time.monotonic() > until:
            said.append(f"{change.path}: not formatted: the time limit was reached.")
        else:
            said.append(await _format_file(files, change))
    return "\n".join(filter(None, said))


async def _format_file(files: GuardedFiles, change: Change) -> str:
    assert change.after is not None
    before, after = change.before.data if change.before else None, change.after.data
    formatters, private = files.workspace.formatters, files.gate.policy.hidden_globs
    done = await formatters.format(change.path, before, after, private_globs=private)
    if done is None:
        return ""
    if done.data is None:
        return f"{change.path}: not formatted: {done.why}"
    formatting = ChangeSet.of(
        Change.of(change.path, before=after, after=done.data), note=f"formatted by {done.formatter}"
    )
    if files.gate.policy.decide(formatting, files.call.tool).verdict != "allow":
        return f"{change.path}: not formatted: that would need a separate approval."
    try:
        await files.apply(formatting)
    except ToolError as refusal:
        return f"{change.path}: not formatted: {refusal.message}"
    from handtools.text.diffs.unified_diff import unified_diff

    diff = without_surrogates(unified_diff(change.path, decode(after).body, decode(done.data).body))
    shown = clip_text(diff, max_lines=SHOWN_DIFF_LINES, max_bytes=SHOWN_DIFF_BYTES, keep="head").text
    return f"{done.formatter} then formatted {change.path}:\n{shown}"


async def diagnose_changed_files(files: GuardedFiles, deadline: float) -> str:
    """Ask language servers about the changed files and return the diagnostics as text.

    The user's own undo and review have no use for them, so they start no server and wait for none.
    """
    language, policy = files.workspace.language, files.gate.policy
    if files.call.agent == PERSON_AGENT_NAME:
        return ""
    changes = net_changes(change for each in files.transactions for change in each.changes)
    paths = [change.path for change in changes if language.speaks(change.path)]
    ignored = {path for path in paths if enclosing_derived_folder(path)}
    checked = [path for path in paths if path not in ignored and not language.missing_server_sentence(path)]
    if checked:
        ignored |= await files.workspace.search.find_ignored_paths(checked)
    elif not paths:
        return ""
    from handtools.core.language import review_text
    from handtools.runtime.guards.language import visible_review

    def late(review: "DiagnosticReview") -> None:
        files.announce(Reviewed(files.call.id, visible_review(review, policy)))

    seconds = min(DIAGNOSE_SECONDS, deadline - time.monotonic() - 0.1)
    review = await language.review(
        changes, ignored=ignored, private_globs=policy.hidden_globs, timeout=max(seconds, 0.0), late=late
    )
    return review_text(visible_review(review, policy))


def _warm_servers(files: GuardedFiles) -> None:
    for path in files.read_nodes:
        language = files.workspace.language
        if language.speaks(path):
            language.warm(path, private_globs=files.gate.policy.hidden_globs)


async def note_hard_links(files: GuardedFiles, deadline: float) -> str:  # noqa: ARG001
    """Return notes about replaced files that still have their old content under other names (hard links)."""
    told = (
        f"{path}: {count} other hard link{'s' if count > 1 else ''} to it still {'have' if count > 1 else 'has'} "
        "the old content."
        for path, count in files.linked.items()
    )
    return "\n".join(told)


AFTER_CHANGE_STEPS: tuple[AfterChangeStep, ...] = (note_hard_links, format_files, diagnose_changed_files)

MAX_GUIDED_PATHS = 50
"""Most files of one call for which AGENTS.md files and skills are looked up."""
GUIDE_BYTES = 6_000
"""Most bytes shown of one AGENTS.md file."""
ALL_GUIDES_BYTES = 8_000
"""Most bytes shown of all AGENTS.md files in one result; the rest are only named."""
SKILL_MENTION_CHARS = 200

FoundGuidesAndSkills = tuple[list[str], list[tuple[Skill, str]]]
"""Paths of AGENTS.md files, and skills with the file they apply to."""


async def with_guidance(result: Result[Any], files: GuardedFiles) -> Result[Any]:
    """Add AGENTS.md texts and skills for the call's files that this session has not been shown yet."""
    if not files.read_nodes:
        return result
    quick = files.workspace.files.is_fast_to_read
    guides, skills = (
        _guides_and_skills(files) if quick else await to_thread.run_sync(_guides_and_skills, files)
    )
    if not guides and not skills:
        return result
    notes = await to_thread.run_sync(_guidance_notes, files, guides, skills)
    return result.with_fields(content=(*result.content, *map(Text, notes))) if notes else result


def _guides_and_skills(files: GuardedFiles) -> FoundGuidesAndSkills:
    known = files.workspace.skills
    guides: dict[str, None] = {}
    skills: dict[str, tuple[Skill, str]] = {}
    for path in islice(files.read_nodes, MAX_GUIDED_PATHS):
        guides |= dict.fromkeys(known.guides(path))
        if path.endswith(f"/{GUIDE_FILE}"):
            guides[path] = None
        for skill in known.skills_matching_path(path):
            if not skill.is_hidden(files.gate.policy.hides):
                skills.setdefault(skill.file, (skill, path))
    return list(guides), list(skills.values())


def _guidance_notes(files: GuardedFiles, guides: list[str], skills: list[tuple[Skill, str]]) -> list[str]:
    journal, call = files.workspace.journal, files.call

    def is_new(path: str) -> bool:
        return _may_be_read(files, path) and journal.shown_guidance.mark_shown(call, path)

    try:
        with journal.together():
            # A guide or skill that the agent just read itself is marked as shown but not added.
            new = [path for path in guides if is_new(path) and path not in files.read_nodes]
            about = [(s, path) for s, path in skills if is_new(s.file) and s.file not in files.read_nodes]
    except HostError:
        # The call itself succeeded; the journal's error is logged when the call is recorded.
        return []
    return [*_guide_texts(files, new), *(_skill_mention(skill, path) for skill, path in about)]


def _may_be_read(files: GuardedFiles, path: str) -> bool:
    return files.gate.policy.decide(ReadEffect((path,)), files.call.tool).verdict == "allow"


def _guide_texts(files: GuardedFiles, paths: list[str]) -> Iterator[str]:
    room = ALL_GUIDES_BYTES
    for path in paths:
        most = min(room, GUIDE_BYTES)
        data = _read_guide(files, path, most)
        if data is None:
            continue
        about = f"for agents working in `{path.rpartition('/')[0]}/`, shown once"
        if most < GUIDE_BYTES and len(data) > most:
            yield f"(`{path}` contains notes {about}: read it.)"
            continue
        shown = clip_text(decode(data).body, max_lines=400, max_bytes=most, keep="head")
        more = f"\n(Shortened: `read` the rest of `{path}`.)" if shown.clipped else ""
        room -= len(shown.text.encode())
        yield f"== {path} (notes {about}) ==\n{shown.text.rstrip()}{more}"


def _read_guide(files: GuardedFiles, path: str, most: int) -> bytes | None:
    """Return the first bytes of an AGENTS.md file; None if it can't be read or its symlink target may not be."""
    host = files.workspace.files

    def look() -> bytes | None:
        located = host.locate(path)
        return host.read(located, size=most + 1) if _may_be_read(files, located) else None

    try:
        return retry_while_links_change(look)
    except ToolError:
        return None


def _skill_mention(skill: Skill, path: str) -> str:
    words = skill.description
    short = words if len(words) <= SKILL_MENTION_CHARS else f"{words[:SKILL_MENTION_CHARS].rstrip()}…"
    return f"(The skill `{skill.name}` is for files like `{path}`: {short} Instructions: `{skill.file}`.)"


MAX_RESULT_TEXT_BYTES = 70_000
"""Large enough for a full page of `read`: 50,000 bytes plus 2,000 line numbers."""
MAX_RESULT_TEXT_LINES = 2_500


def limit_output_text(result: Result[Any], call: Call, output_store: Store) -> Result[Any]:
    """Cut the result's text to the output limits, keeping head and tail, and store the full text."""
    result = _with_portable_text(result)
    text = result.text
    most_bytes = len(text) if text.isascii() else len(text) * 4
    if most_bytes <= MAX_RESULT_TEXT_BYTES and text.count("\n") < MAX_RESULT_TEXT_LINES:
        return result
    whole = text.encode()
    clipped = clip_text(text, max_lines=MAX_RESULT_TEXT_LINES, max_bytes=MAX_RESULT_TEXT_BYTES, keep="both")
    if not clipped.clipped:
        return result
    name = output_file_name(call.id, ".txt")
    output_store.put(whole, name=name)
    spill = SpilledOutput(f"{OUTPUT_SCHEME}{name}", len(whole), clipped.lines)
    note = f"\n(Shortened from {clipped.lines:,} lines. Full text: `{spill.path}`; `read` it by range.)"
    others = [block for block in result.content if not isinstance(block, Text)]
    return result.with_fields(content=(Text(clipped.text + note), *others), spill=spill)


def _with_portable_text(result: Result[Any]) -> Result[Any]:
    """Return the result with lone surrogates in its text replaced, so that it can be encoded as UTF-8."""
    if result.text.isascii():
        return result
    shown = tuple(Text(without_surrogates(b.text)) if isinstance(b, Text) else b for b in result.content)
    return result.with_fields(content=shown)
