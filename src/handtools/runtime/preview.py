"""What a person sees before they say yes."""

from handtools.core.changes import Change, ChangeSet, Node
from handtools.core.effects import Delivery, Effect, Handover, Run
from handtools.core.trees import is_tree, unpack
from handtools.core.visits import Visit
from handtools.text.clipping import clip
from handtools.text.diffing import unified
from handtools.text.encoding import decode, is_binary

PREVIEW_LINES = 400
PREVIEW_BYTES = 40_000


def preview(effect: Effect) -> str:
    """What a person has to know: the diff of a change, the address of a visit, the words of an errand; bounded."""
    if isinstance(effect, Run):
        text = _script(effect)
    elif isinstance(effect, Visit):
        text = "\n".join(filter(None, (effect.url or effect.place, effect.purpose)))
    elif isinstance(effect, Delivery):
        text = f"{effect.path} ({effect.media_type}, {effect.bytes:,} bytes)\n{effect.title}".rstrip()
    elif isinstance(effect, Handover):
        text = f"{effect.title}\n\n{effect.prompt}"
    else:
        text = diff(effect) if isinstance(effect, ChangeSet) else "\n".join(effect.paths)
    return clip(text, max_lines=PREVIEW_LINES, max_bytes=PREVIEW_BYTES, keep="head").text


def _script(run: Run) -> str:
    """The script, and what in it deserves a look; nothing named does not mean nothing to see."""
    command, script = run.command, run.script
    notes = [f"# not plain: {script.opaque}"] if script.opaque else []
    notes += [f"# look: {danger}" for danger in script.dangers]
    if command.network != "off":
        reach = "any host" if command.network == "on" else ", ".join(command.hosts) or "no host"
        notes.append(f"# network: {reach}")
    return "\n".join([command.script, *notes])


def diff(changes: ChangeSet) -> str:
    """All changes as one unified diff; what is no text is named."""
    return "".join(_one(change) for change in changes)


def _one(change: Change) -> str:
    before, after = change.before, change.after
    nodes = [node for node in (before, after) if node is not None]
    if any(node.kind != "file" or not node.known or is_binary(node.data) for node in nodes):
        return f"{change.path}: {_words(before)} -> {_words(after)}\n"
    if len(nodes) == 2 and nodes[0].data == nodes[1].data and nodes[0].mode != nodes[1].mode:
        return f"{change.path}: mode {_mode(before)} -> {_mode(after)}\n"
    was = None if before is None else decode(before.data).body
    return unified(change.path, was, None if after is None else decode(after.data).body)


def _words(node: Node | None) -> str:
    if node is None:
        return "nothing"
    if node.kind == "link":
        return f"a link to {node.data.decode(errors='replace')}"
    if is_tree(node):
        return f"a folder with {len(unpack(node.data)):,} things in it, {node.bytes:,} bytes"
    return "a folder" if node.kind == "folder" else f"{node.bytes:,} bytes"


def _mode(node: Node | None) -> str:
    return "as it is" if node is None or node.mode is None else f"{node.mode:04o}"
