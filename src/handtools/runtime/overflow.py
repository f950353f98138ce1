"""Overflow: the model gets what fits; the whole is kept and can be read by page."""

from typing import Any

from handtools.core.call import Call
from handtools.core.content import Text
from handtools.core.ports import Store
from handtools.core.result import Result, Spill
from handtools.runtime.guard import OUTPUT
from handtools.text.clipping import clip
from handtools.text.encoding import displayed

OUTPUT_BYTES = 60_000
OUTPUT_LINES = 2_500


def bound(result: Result[Any], call: Call, outputs: Store) -> Result[Any]:
    """The result with its text cut to the limits, head and tail kept, and the whole put away."""
    result = _carried(result)
    text = result.text
    most_bytes = len(text) if text.isascii() else len(text) * 4
    if most_bytes <= OUTPUT_BYTES and text.count("\n") < OUTPUT_LINES:
        return result
    whole = text.encode()
    clipped = clip(text, max_lines=OUTPUT_LINES, max_bytes=OUTPUT_BYTES, keep="both")
    if not clipped.clipped:
        return result
    name = f"{call.id}.txt"
    outputs.put(whole, name=name)
    spill = Spill(f"{OUTPUT}{name}", len(whole), clipped.lines)
    note = f"\n(Shortened from {clipped.lines:,} lines. The whole is `{spill.path}`: `read` it by range.)"
    others = [block for block in result.content if not isinstance(block, Text)]
    return result.settled(content=(Text(clipped.text + note), *others), spill=spill)


def _carried(result: Result[Any]) -> Result[Any]:
    """The result with text that every transport can carry."""
    if result.text.isascii():
        return result
    shown = tuple(Text(displayed(b.text)) if isinstance(b, Text) else b for b in result.content)
    return result.settled(content=shown)
