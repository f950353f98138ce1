"""The picture of growth: what a call costs by the number of workspaces on its host, as an SVG."""

import math
from collections.abc import Iterator, Mapping
from html import escape

_WIDTH, _HEIGHT, _LEFT, _TOP = 760, 300, 64, 44
_COLOURS = {"read": "#3b82c4", "edit": "#c2703d", "bash": "#5a9e6f"}
_STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.small { font-size: 11px } .grid { stroke: #8c8c8c; stroke-opacity: .35 } polyline { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } }
</style>"""

Medians = Mapping[tuple[str, str], float]
"""Milliseconds by tool and clock."""


def growth_plot(by_size: Mapping[int, Medians]) -> str:
    """Lines over the number of workspaces, both on scales of powers of ten; processor time is dashed."""
    shown = [ms for medians in by_size.values() for ms in medians.values()]
    low, high = math.floor(math.log10(min(shown))), math.ceil(math.log10(max(shown)))
    first, last = math.log10(min(by_size)), math.log10(max(by_size))

    def across(size: int) -> float:
        return _LEFT + 20 + (_WIDTH - _LEFT - 60) * (math.log10(size) - first) / (last - first)

    def down(ms: float) -> float:
        return _HEIGHT - 44 - (_HEIGHT - 44 - _TOP) * (math.log10(ms) - low) / (high - low)

    def parts() -> Iterator[str]:
        for power in range(low, high + 1):
            y = down(10.0**power)
            yield f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - 20}" y1="{y:g}" y2="{y:g}"/>'
            yield _text(_LEFT - 8, y + 4, f"{10.0**power:g} ms", "end")
        for size in by_size:
            yield _text(across(size), _HEIGHT - 24, f"{size:,}", "middle")
        yield _text(_WIDTH / 2, _HEIGHT - 6, "workspaces on the host", "middle")
        for number, (tool, colour) in enumerate(_COLOURS.items()):
            x = _LEFT + 20 + number * 80
            yield f'<circle cx="{x}" cy="18" r="5" fill="{colour}"/>' + _text(x + 10, 22, tool, "start")
            for clock, dashes in (("wall", ""), ("processor", ' stroke-dasharray="5 4"')):
                points = [(across(size), down(of[tool, clock])) for size, of in by_size.items()]
                line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
                yield f'<polyline points="{line}" stroke="{colour}"{dashes}/>'
                yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points)
        yield _text(_WIDTH - 20, 22, "whole: wall clock, dashed: processor time of the host", "end")

    title = "What a call costs, by the number of workspaces on its host"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">'
    return "\n".join([head, f"<title>{escape(title)}</title>", _STYLE, *parts(), "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text class="small" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'
