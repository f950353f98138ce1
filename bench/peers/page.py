"""The tables and plots of docs/explanation/peers.md, from one run."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from bench.peers.edits import edit_cases
from bench.peers.job_times import BUBBLEWRAP, GOALS, RIPGREP, JobTimes, time_figures
from bench.peers.servers import OURS

PAGE = Path(__file__).parents[2] / "docs/explanation/peers.md"
BEGIN, END = "<!-- from `python -m bench peers --page` -->", "<!-- to here -->"
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


def write_page(times: JobTimes, ends: Mapping[str, Counter[str]], versions: Mapping[str, str]) -> None:
    """Put the tables between their marks and the plots beside the page."""
    images = PAGE.parent / "images"
    (images / "peers-edits.svg").write_text(_edits_plot(ends))
    (images / "peers-times.svg").write_text(_times_plot(times))
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    made = "\n\n".join([_edits_table(ends, versions), _times_table(times), _goals_table(times)])
    PAGE.write_text(f"{before}{BEGIN}\n\n{made}\n\n{END}{after}")


def _table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _edits_table(ends: Mapping[str, Counter[str]], versions: Mapping[str, str]) -> str:
    head = [f"of {len(list(edit_cases()))} edits", "version", *ENDS]
    return _table(
        head, ([name, versions.get(name, ""), *(str(of[end]) for end in ENDS)] for name, of in ends.items())
    )


def _servers(times: JobTimes) -> list[str]:
    return list(times.definition_tokens)


def _times_table(times: JobTimes) -> str:
    names = _servers(times)

    def cells() -> Iterator[Sequence[str]]:
        for job in times.jobs:
            rows = {name: times.rows[job, name] for name in names if (job, name) in times.rows}
            best = min(row.ms for row in rows.values())
            shown = {
                name: _bold(f"{row.ms:,.1f}", row.ms == best) + f" / {row.tokens:,}" * bool(row.answer)
                for name, row in rows.items()
            }
            yield [job, *(shown.get(name, "–") for name in names)]
        for job, values in (
            ("memory after all, MB", times.memory_mb),
            ("definitions, tokens", times.definition_tokens),
        ):
            yield [job, *(_bold(f"{values[n]:,.0f}", values[n] == min(values.values())) for n in names)]

    return _table(["ms / tokens of the answer", *names], cells())


def _bold(text: str, best: bool) -> str:
    return f"**{text}**" if best else text


def _goals_table(times: JobTimes) -> str:
    def cells() -> Iterator[Sequence[str]]:
        for figure in time_figures(times):
            if figure.goal is None:
                continue
            job = figure.name.partition(": ")[0]
            other = GOALS[job][0] if job in GOALS else ""
            seen = f"{figure.value:,.1f} {figure.unit}"
            goal = f"{figure.goal:g} {figure.unit}"
            if figure.ratio is not None:
                seen, goal = f"{figure.ratio:.2f}x of {other}", f"{figure.goal:g}x"
            yield [job, seen, goal, "yes" if figure.ok else "**no**"]

    return _table(["goal", "ours", "at most", "reached"], cells())


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


def _times_plot(times: JobTimes) -> str:
    """A line for each job: how long each server took, on a scale of powers of ten."""
    names = [*_servers(times)]
    colours = dict(zip(names, _COLOURS, strict=False))
    shown = {key: row.ms for key, row in times.rows.items() if key[1] not in {RIPGREP, BUBBLEWRAP}}
    low, high = math.floor(math.log10(min(shown.values()))), math.ceil(math.log10(max(shown.values())))
    bottom = 40 + _ROW * len(times.jobs)

    def place(ms: float) -> float:
        return _LABEL + 10 + (_WIDTH - _LABEL - 30) * (math.log10(ms) - low) / (high - low)

    def parts() -> Iterator[str]:
        yield from _legend(colours)
        for power in range(low, high + 1):
            x = place(10.0**power)
            yield f'<line x1="{x:g}" x2="{x:g}" y1="32" y2="{bottom}"/>'
            yield _text(x, bottom + 15, f"{10.0**power:,g} ms", "middle", "small")
        for row, job in enumerate(times.jobs):
            y = 40 + row * _ROW + _ROW / 2
            yield _text(_LABEL - 8, y + 4, job, "end")
            yield f'<line x1="{_LABEL}" x2="{_WIDTH - 10}" y1="{y:g}" y2="{y:g}"/>'
            for name in reversed(names):
                if (job, name) in shown:
                    x, size = place(shown[job, name]), 7 if name == OURS else 5
                    yield f'<circle cx="{x:g}" cy="{y:g}" r="{size}" fill="{colours[name]}"/>'

    return _svg(bottom + 24, "How long jobs take, by server", parts())
