"""The tables and plots of docs/explanation/peers.md: `python -m bench.peers.page FILE...`.

The files are what `python -m bench peers --json` printed, one for all or one for each half.
"""

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from bench.peers.job_times import BUBBLEWRAP, DEFINITIONS, GOALS, MEMORY, RIPGREP
from bench.peers.servers import OURS

PAGE = Path(__file__).parents[2] / "docs/explanation/peers.md"
BEGIN, END = "<!-- from `python -m bench.peers.page` -->", "<!-- to here -->"
ENDS = ("right", "refused", "damaged")
_WIDTH, _LABEL, _ROW = 760, 190, 26
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c")
"""Told apart by everybody, on white and on black."""
_END_COLOURS: dict[str, str] = dict(zip(ENDS, ("#0072b2", "#8c8c8c", "#d55e00"), strict=True))
_STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.in { fill: #fff; font-weight: 600 } .small { font-size: 11px } line { stroke: #8c8c8c; stroke-opacity: .35 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .in { fill: #fff } }
</style>"""


@dataclass(slots=True)
class Printed:
    """What the bench printed, by what it is about."""

    ends: dict[str, Counter[str]] = field(default_factory=dict)
    """How edits ended, by peer."""
    times: dict[tuple[str, str], float] = field(default_factory=dict)
    """Milliseconds, by job and server."""
    tokens: dict[tuple[str, str], str] = field(default_factory=dict)
    """Of the answer, as they are written, by job and server."""
    sizes: dict[tuple[str, str], float] = field(default_factory=dict)
    """Memory and definitions, by server."""
    goals: list[dict[str, Any]] = field(default_factory=list)

    @property
    def jobs(self) -> list[str]:
        return list(dict.fromkeys(job for job, _ in self.times))

    @property
    def servers(self) -> list[str]:
        return list(dict.fromkeys(name for _, name in self.sizes))


def read_printed(lines: Iterator[str]) -> Printed:
    """Sort lines of JSON into what they are about."""
    printed = Printed()
    for line in lines:
        figure = json.loads(line)
        name, value = figure["name"], figure["value"]
        if figure["goal"] is not None:
            printed.goals.append(figure)
        if found := re.fullmatch(r"(\w+) of \d+ edits: (\w+)", name):
            printed.ends.setdefault(found[2], Counter())[found[1]] = int(value)
        elif found := re.fullmatch(rf"({MEMORY}|{DEFINITIONS}): (\w+)", name):
            printed.sizes[found[1], found[2]] = value
        elif found := re.fullmatch(r"(.+): (\w+)(?:, ([\d,]+) tokens)?", name):
            printed.times[found[1], found[2]] = value
            printed.tokens[found[1], found[2]] = found[3] or ""
    return printed


def write_page(printed: Printed) -> None:
    """Put the tables between their marks and the plots beside the page."""
    images = PAGE.parent / "images"
    (images / "peers-edits.svg").write_text(_edits_plot(printed.ends))
    (images / "peers-times.svg").write_text(_times_plot(printed))
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    made = "\n\n".join([_edits_table(printed.ends), _times_table(printed), _goals_table(printed.goals)])
    PAGE.write_text(f"{before}{BEGIN}\n\n{made}\n\n{END}{after}")


def _table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _edits_table(ends: Mapping[str, Counter[str]]) -> str:
    return _table(["edits", *ENDS], ([name, *(str(of[end]) for end in ENDS)] for name, of in ends.items()))


def _times_table(printed: Printed) -> str:
    def cells() -> Iterator[Sequence[str]]:
        for values, digits in ((printed.times, 1), (printed.sizes, 0)):
            for job in dict.fromkeys(job for job, _ in values):
                of = {name: values[job, name] for name in printed.servers if (job, name) in values}
                yield [job, *(_cell(printed, job, name, of, digits) for name in printed.servers)]

    return _table(["ms / tokens of the answer", *printed.servers], cells())


def _cell(printed: Printed, job: str, name: str, of: Mapping[str, float], digits: int) -> str:
    if name not in of:
        return "–"
    shown = f"{of[name]:,.{digits}f}"
    tokens = printed.tokens.get((job, name), "")
    return (f"**{shown}**" if of[name] == min(of.values()) else shown) + (f" / {tokens}" if tokens else "")


def _goals_table(goals: Sequence[Mapping[str, Any]]) -> str:
    def cells() -> Iterator[Sequence[str]]:
        for figure in goals:
            job = (
                figure["name"].partition(",")[0]
                if figure["ratio"] is None
                else figure["name"].partition(": ")[0]
            )
            seen, goal = f"{figure['value']:,g} {figure['unit']}", f"{figure['goal']:,g} {figure['unit']}"
            if figure["ratio"] is not None:
                seen, goal = f"{figure['ratio']:.2f}x of {GOALS[job][0]}", f"{figure['goal']:g}x"
            yield [job, seen, goal, "yes" if figure["ok"] else "**no**"]

    return _table(["what it must show", "ours", "goal", "reached"], cells())


def _svg(height: float, title: str, parts: Iterator[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:g}" role="img">'
    return "\n".join([head, f"<title>{escape(title)}</title>", _STYLE, *parts, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{kind}">{escape(text)}</text>'


def _legend(colours: Mapping[str, str]) -> Iterator[str]:
    step = (_WIDTH - _LABEL) / len(colours)
    for number, (name, colour) in enumerate(colours.items()):
        x = _LABEL + number * step
        yield f'<circle cx="{x + 6:g}" cy="16" r="5" fill="{colour}"/>'
        yield _text(x + 15, 20, name, kind="small")


def _edits_plot(ends: Mapping[str, Counter[str]]) -> str:
    """A bar for each peer: how its edits ended."""
    room = _WIDTH - _LABEL - 10

    def parts() -> Iterator[str]:
        yield from _legend(_END_COLOURS)
        for row, (name, ended) in enumerate(ends.items()):
            x, y = float(_LABEL), 34 + row * _ROW
            yield _text(_LABEL - 8, y + 15, name, "end")
            for end in ENDS:
                width = room * ended[end] / ended.total()
                yield f'<rect x="{x:g}" y="{y}" width="{width:g}" height="20" fill="{_END_COLOURS[end]}"/>'
                if ended[end]:
                    yield _text(x + width / 2, y + 15, str(ended[end]), "middle", "in")
                x += width

    return _svg(34 + _ROW * len(ends) + 8, "How edits ended, by peer", parts())


def _times_plot(printed: Printed) -> str:
    """A line for each job: how long each server took, on a scale of powers of ten."""
    colours = dict(zip(printed.servers, _COLOURS, strict=False))
    shown = {key: ms for key, ms in printed.times.items() if key[1] not in {RIPGREP, BUBBLEWRAP}}
    low, high = math.floor(math.log10(min(shown.values()))), math.ceil(math.log10(max(shown.values())))
    bottom = 40 + _ROW * len(printed.jobs)

    def place(ms: float) -> float:
        return _LABEL + 10 + (_WIDTH - _LABEL - 40) * (math.log10(ms) - low) / (high - low)

    def parts() -> Iterator[str]:
        yield from _legend(colours)
        for power in range(low, high + 1):
            x = place(10.0**power)
            yield f'<line x1="{x:g}" x2="{x:g}" y1="32" y2="{bottom}"/>'
            yield _text(x, bottom + 15, f"{10**power:,} ms", "middle", "small")
        for row, job in enumerate(printed.jobs):
            y = 40 + row * _ROW + _ROW / 2
            yield _text(_LABEL - 8, y + 4, job, "end")
            yield f'<line x1="{_LABEL}" x2="{_WIDTH - 10}" y1="{y:g}" y2="{y:g}"/>'
            for name in reversed(printed.servers):
                if (job, name) in shown:
                    x, size = place(shown[job, name]), 7 if name == OURS else 5
                    yield f'<circle cx="{x:g}" cy="{y:g}" r="{size}" fill="{colours[name]}"/>'

    return _svg(bottom + 24, "How long jobs take, by server", parts())


if __name__ == "__main__":
    write_page(read_printed(line for file in sys.argv[1:] for line in Path(file).read_text().splitlines()))
