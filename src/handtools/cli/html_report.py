"""The session report: a self-contained HTML page with charts, calls, diffs and outputs; loads nothing."""

import base64
import hashlib
import html
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from handtools.text.plurals import number_with_noun
from handtools.text.visible_text import with_visible_characters

MAX_BODY_BYTES = 4_500_000
"""Maximum bytes of arguments, results and diffs in one page, divided among its calls."""
MAX_CALL_BYTES = 40_000
MAX_CHART_ROWS = 12
STATUS_MARKS = {"ok": "✓", "pending": "?", "running": "…", "denied": "⊘"}
"""A symbol for each status, in addition to its colour; all other statuses are failures."""
FAILURE_MARK = "✗"
STATUS_KINDS = {"✓": "good", "?": "open", "…": "open"}
"""The CSS class of a call by its status symbol; for all other symbols it is `bad`."""
MAX_PAUSE_SECONDS = 120.0
"""Longer pauses between calls are drawn at this length, so that a night's break doesn't fill the timeline."""
TIMELINE_STEPS = 1_000
TIMELINE_BARS = {"good": (3, 4), "open": (2, 6), "bad": (0, 10)}
"""Top and height of a call's bar in its row, so that failed calls can be recognised without colour."""


@dataclass(frozen=True, slots=True)
class ReportedFile:
    """A file that a call changed, with the numbers of added and removed lines (None if it is not text)."""

    path: str
    added: int | None
    removed: int | None


@dataclass(frozen=True, slots=True)
class ReportedQuestion:
    """An approval request of a call: its subject, the rule that caused it, and the user's answer."""

    title: str
    rule: str
    answer: str
    """For example `allowed once`, `denied`, or `waiting for approval`; charts count by the first word."""
    message: str = ""
    """The user's message to the agent when denying."""


@dataclass(frozen=True, slots=True)
class ReportedCall:
    """One call as the report shows it."""

    id: str
    tool: str
    subject: str
    """A short description: the paths it changed, or its first argument."""
    at: str
    seconds: float
    tokens: int
    status: str
    code: str
    undone: str
    """Empty, `undone` or `partly undone`."""
    agent: str
    arguments: str
    answer: str
    diff: str
    files: tuple[ReportedFile, ...] = ()
    match: str = ""
    """For an edit: how its old text was matched in the file (such as `exact`), or why it was refused."""
    undo_command: str = ""
    began: float = 0.0
    """Start time in seconds, as is `ended`; only differences between calls are used."""
    ended: float = 0.0
    questions: tuple[ReportedQuestion, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedTask:
    """One task of a batch, whose calls are on the same page."""

    name: str
    status: str
    """`ok`, or anything else for a failure, as for a call."""
    score: float | None
    seconds: float
    calls: int
    tokens: int
    files: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class ChartRow:
    """One bar of a chart: a name, its value, and the value as text next to the bar."""

    name: str
    value: float
    text: str


def html_report(title: str, calls: Sequence[ReportedCall], *, tasks: Sequence[ReportedTask] = ()) -> str:
    """Build the page, with calls in the given order below the tasks of a batch; all content is escaped."""
    room = min(MAX_BODY_BYTES // max(len(calls), 1), MAX_CALL_BYTES)
    style, script = source_hash(REPORT_STYLE), source_hash(REPORT_SCRIPT)
    policy = f"default-src 'none'; style-src '{style}'; script-src '{script}'"
    name = escaped(title)
    return "".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{name}</title><style>{REPORT_STYLE}</style></head><body><header><h1>{name}</h1>",
            f"<p>{escaped(summary_line(calls))}</p></header><main>",
            *_task_table(tasks),
            *figures(calls),
            *_call_list_items(calls, room),
            f"</main><script>{REPORT_SCRIPT}</script></body></html>\n",
        ]
    )


def escaped(text: str) -> str:
    """Escape text for use anywhere in the page; make control, invisible and bidirectional characters visible."""
    return html.escape(with_visible_characters(text))


def _escaped_html_within(text: str, most: int) -> str:
    """Escape text for the page, cut to `most` bytes with a note of how much is missing."""
    kept = text[:most]
    shown = escaped(kept)
    while kept and (size := len(shown.encode())) > most:
        kept = kept[: min(len(kept) * most // size, len(kept) - 1)]
        shown = escaped(kept)
    left = len(text) - len(kept)
    return shown if not left else f"{shown}\n<em>… {number_with_noun(left, 'character')} more</em>"


def summary_line(calls: Sequence[ReportedCall]) -> str:
    """Totals of all calls in one line."""
    failed = sum(mark_of_status(call.status) == FAILURE_MARK for call in calls)
    files = {file.path for call in calls for file in call.files}
    told = [
        number_with_noun(len(calls), "call"),
        f"{failed:,} failed",
        f"{number_with_noun(len(files), 'file')} changed",
        f"{sum(call.tokens for call in calls):,} result tokens",
        f"{sum(call.seconds for call in calls):,.1f} s in tools",
    ]
    if calls:
        told.append(f"{calls[0].at} to {calls[-1].at}")
    return " · ".join(told)


def mark_of_status(status: str) -> str:
    """The symbol of a status."""
    return STATUS_MARKS.get(status, FAILURE_MARK)


def kind_of_status(status: str) -> str:
    """Whether a status is `good`, `open` or `bad`."""
    return STATUS_KINDS.get(mark_of_status(status), "bad")


def figures(calls: Sequence[ReportedCall]) -> Iterable[str]:
    """The HTML of the timeline and the charts; expects the calls oldest first."""
    yield '<section class="charts" aria-label="Charts">'
    yield from _timeline_table(calls)
    yield from (_chart_table(heading, rows) for heading, rows in _chart_data(calls) if rows)
    yield "</section>"


def _chart_data(calls: Sequence[ReportedCall]) -> Iterable[tuple[str, list[ChartRow]]]:
    seconds: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for call in calls:
        seconds[call.tool] += call.seconds  # type: ignore[assignment]
        tokens[call.tool] += call.tokens
        for file in call.files:
            lines[file.path] += (file.added or 0) + (file.removed or 0)
    matches = Counter(call.match for call in calls if call.match)
    ends = Counter(call.code or call.status for call in calls if call.status != "ok")
    yield "Time by tool", _chart_rows(seconds, "{:,.1f} s")
    yield "Result tokens by tool", _chart_rows(tokens, "{:,}")
    yield "Files by lines changed", _chart_rows(lines, "{:,}")
    yield "Edits by how the old text was found", _chart_rows(matches, "{:,}")
    yield "Approval requests by rule", _question_rows(calls)
    yield "Failed or pending calls", _chart_rows(ends, "{:,}")


def _chart_rows(values: "Counter[str]", form: str) -> list[ChartRow]:
    return [ChartRow(name, value, form.format(value)) for name, value in values.most_common(MAX_CHART_ROWS)]


def _question_rows(calls: Sequence[ReportedCall]) -> list[ChartRow]:
    asked = [question for call in calls for question in call.questions]
    answers: dict[str, Counter[str]] = {}
    for question in asked:
        answers.setdefault(question.rule, Counter())[question.answer.partition(" ")[0]] += 1
    most = sorted(answers.items(), key=lambda item: -item[1].total())[:MAX_CHART_ROWS]
    return [
        ChartRow(rule, said.total(), ", ".join(f"{count:,} {word}" for word, count in said.most_common()))
        for rule, said in most
    ]


def _timeline_table(calls: Sequence[ReportedCall]) -> Iterable[str]:
    """A table with a row for each tool and a bar for each call, from its start to its end."""
    placed = list(_without_long_pauses(calls))
    whole = max((end for _, _, end in placed), default=0.0)
    if not whole:
        return
    rows: dict[str, list[tuple[str, int, int]]] = {}
    for call, begin, end in placed:
        first = min(int(begin / whole * TIMELINE_STEPS), TIMELINE_STEPS - 2)
        last = max(int(end / whole * TIMELINE_STEPS), first + 2)
        rows.setdefault(call.tool, []).append((kind_of_status(call.status), first, last))
    yield '<table class="timeline"><caption>Timeline '
    yield f"<small>{escaped(calls[0].at)} to {escaped(calls[-1].at)}; tall bars are failed calls; "
    yield f"pauses over {MAX_PAUSE_SECONDS / 60:.0f} minutes are shortened</small></caption><tbody>"
    tools = Counter(call.tool for call in calls)
    for tool, count in tools.most_common(MAX_CHART_ROWS):
        yield f'<tr><th scope="row">{escaped(tool)}</th><td>{number_with_noun(count, "call")}</td><td>'
        yield f'<svg aria-hidden="true" viewBox="0 0 {TIMELINE_STEPS} 10" preserveAspectRatio="none">'
        for kind, (top, height) in TIMELINE_BARS.items():
            bars = dict.fromkeys((first, last) for each, first, last in rows[tool] if each == kind)
            if bars:
                drawn = "".join(f"M{a} {top}h{b - a}v{height}h{a - b}z" for a, b in bars)
                yield f'<path class="{kind}" d="{drawn}"/>'
        yield "</svg></td></tr>"
    yield "</tbody></table>"


def _without_long_pauses(calls: Sequence[ReportedCall]) -> Iterable[tuple[ReportedCall, float, float]]:
    """Yield each call with its start and end in seconds since the first one; long pauses are shortened."""
    cut, until = 0.0, 0.0
    for number, call in enumerate(sorted(calls, key=lambda each: each.began)):
        if not number:
            cut = until = call.began
        cut += max(call.began - until - MAX_PAUSE_SECONDS, 0.0)
        until = max(until, call.ended)
        yield call, call.began - cut, max(call.ended, call.began) - cut


def _chart_table(heading: str, rows: Sequence[ChartRow]) -> str:
    """A table with a bar next to each number, so that no information depends on length or colour alone."""
    most = max(row.value for row in rows) or 1
    drawn = "".join(
        f'<tr><th scope="row">{escaped(row.name)}</th><td>{escaped(row.text)}</td><td>'
        f'<svg aria-hidden="true" viewBox="0 0 100 8" preserveAspectRatio="none">'
        f'<rect width="{100 * row.value / most:.1f}" height="8"/></svg></td></tr>'
        for row in rows
    )
    return f"<table><caption>{escaped(heading)}</caption><tbody>{drawn}</tbody></table>"


def _task_table(tasks: Sequence[ReportedTask]) -> Iterable[str]:
    if not tasks:
        return
    mean = sum(task.score or 0.0 for task in tasks) / len(tasks)
    ended = Counter(mark_of_status(task.status) for task in tasks)
    told = " · ".join(f"{mark} {count:,}" for mark, count in sorted(ended.items()))
    yield f'<section class="tasks" aria-label="Tasks"><h2>{number_with_noun(len(tasks), "task")}: {told}'
    yield f" · mean score {mean:.3f}</h2><div tabindex=0><table><thead><tr>"
    yield from (f'<th scope="col">{name}</th>' for name in _TASK_COLUMNS)
    yield "</tr></thead><tbody>"
    for task in tasks:
        score = "" if task.score is None else f"{task.score:.3g}"
        numbers = (score, f"{task.seconds:,.1f}", f"{task.calls:,}", f"{task.tokens:,}", f"{task.files:,}")
        cells = "".join(f"<td>{number}</td>" for number in numbers)
        note = _escaped_html_within(task.note, _MAX_NOTE_BYTES)
        yield (
            f'<tr class="{kind_of_status(task.status)}"><th scope="row">{mark_of_status(task.status)} '
            f"{escaped(task.name)}</th>{cells}<td>{note}</td></tr>"
        )
    yield "</tbody></table></div></section>"


_TASK_COLUMNS = ("Task", "Score", "Seconds", "Calls", "Result tokens", "Files changed", "Error")
_MAX_NOTE_BYTES = 500


def search_fields() -> str:
    """The fields that filter the list of calls."""
    return (
        '<p class="tools"><label>Search <input id="search" type="search"></label> '
        '<label><input id="problems" type="checkbox"> only failed or pending</label> '
        '<output id="count" for="search problems"></output></p>'
    )


def _call_list_items(calls: Sequence[ReportedCall], room: int) -> Iterable[str]:
    yield f'<section aria-label="Calls">{search_fields()}<ol>'
    for call in calls:
        yield call_item(call, room)
    yield "</ol></section>"


def call_item(call: ReportedCall, room: int, *, actions: str = "") -> str:
    """Render a call as an HTML list item of about `room` bytes, with `actions` (HTML) before the details."""
    mark = mark_of_status(call.status)
    kind = kind_of_status(call.status)
    state = " ".join(
        filter(None, (call.status, call.code if call.code != call.status else "", call.undone))
    )
    facts = [call.at, f"{call.seconds:,.2f} s", number_with_noun(call.tokens, "token"), call.agent]
    parts = [("Arguments", call.arguments, room // 4), ("Result", call.answer, room // 4)]
    bodies = [
        f"<h3>{name}</h3><pre tabindex=0>{_escaped_html_within(text, most)}</pre>"
        for name, text, most in parts
        if text
    ]
    if call.questions:
        bodies.insert(
            0, f"<h3>Approval requests</h3><ul>{''.join(map(_question_item, call.questions))}</ul>"
        )
    if call.diff:
        bodies.append(f"<h3>Changes</h3><pre tabindex=0>{coloured_diff(call.diff, room // 2)}</pre>")
    if call.undo_command:
        bodies.append(f"<p>Undo: <code>{escaped(call.undo_command)}</code></p>")
    return (
        f'<li class="{kind}" id="call-{escaped(call.id)}"><details><summary><b>{mark} {escaped(state)}</b> '
        f"<code>{escaped(call.tool)}</code> <span>{escaped(call.subject)}</span> "
        f"<small>{escaped(' · '.join(filter(None, facts)))}</small></summary>{actions}{''.join(bodies)}"
        "</details></li>"
    )


def _question_item(question: ReportedQuestion) -> str:
    said = f"{question.answer}: {question.message}" if question.message else question.answer
    return (
        f"<li><b>{escaped(question.title)}</b> <small>{escaped(question.rule)}</small> "
        f"<span>{escaped(said)}</span></li>"
    )


def coloured_diff(diff: str, most: int) -> str:
    """A diff as HTML with added and removed lines marked up, in at most `2 * most` bytes.

    Lines keep their `+` and `-`, so that colour is never the only cue.
    """
    shown = _escaped_html_within(diff, most)
    marks = {"+": "ins", "-": "del"}
    groups = groupby(shown.split("\n"), lambda line: line[:1])
    runs = ((marks.get(sign), "\n".join(lines)) for sign, lines in groups)
    marked = "\n".join(f"<{mark}>{lines}</{mark}>" if mark else lines for mark, lines in runs)
    # For very short lines the markup can be longer than the text.
    return marked if len(marked) <= 2 * most else shown


def source_hash(text: str) -> str:
    """The hash by which a content security policy allows an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


# Calls and their summaries use `display: block`, not `list-item`: the browser renumbers list items each
# time one is hidden, so that a search in 5,000 calls would take minutes.
REPORT_STYLE = """
:root{--back:#fff;--text:#1c2024;--faint:#5b6470;--line:#d5dae1;--panel:#f5f7f9;--bar:#3b6fb5;
--good:#17663a;--bad:#a61b1b;--open:#7a4b00;--added:#e2f5e8;--removed:#fdeaea}
@media (prefers-color-scheme:dark){:root{--back:#14171a;--text:#e6e8ea;--faint:#a3acb6;--line:#343b43;
--panel:#1c2125;--bar:#7aa7e0;--good:#7fd6a0;--bad:#ff9b94;--open:#f0c674;--added:#163322;--removed:#3c1d1d}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:76rem;padding:1rem;background:var(--back);color:var(--text);
font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.4rem;margin:.2rem 0}h3{font-size:.85rem;margin:.8rem 0 .2rem;color:var(--faint)}
header p,small{color:var(--faint)}
.charts{display:grid;align-items:start;gap:1rem;margin:1rem 0;
grid-template-columns:repeat(auto-fit,minmax(min(24rem,100%),1fr))}
.charts table{width:100%;border-collapse:collapse;background:var(--panel);border:1px solid var(--line);
border-radius:6px;padding:.6rem;table-layout:fixed}
caption{font-weight:600;text-align:left;padding:.3rem .2rem}
.charts th{font-weight:400;text-align:left;width:45%;padding:.1rem .6rem}
.charts .timeline{grid-column:1/-1}.charts .timeline th,.charts .timeline td{width:18%}
.charts .timeline td+td{width:64%}
.timeline svg{height:1rem}caption small{font-weight:400}path{fill:var(--bar)}
path.bad{fill:var(--bad)}path.open{fill:var(--open)}
.charts td{width:20%;text-align:right;padding:.1rem .6rem}.charts td+td{width:35%}
svg{width:100%;height:.6rem;display:block}rect{fill:var(--bar)}
.tasks h2{font-size:1rem}.tasks div{max-height:30rem;overflow:auto;border:1px solid var(--line);border-radius:6px}
.tasks table{width:100%;border-collapse:collapse;background:var(--panel)}
.tasks th,.tasks td{text-align:left;padding:.1rem .6rem}.tasks tbody th{font-weight:400}
.tasks .bad th{color:var(--bad)}.tasks .good th{color:var(--good)}
.tools{display:flex;gap:1rem;flex-wrap:wrap;align-items:center}
input[type=search]{font:inherit;padding:.2rem .4rem;border:1px solid var(--faint);border-radius:4px;
background:var(--back);color:var(--text)}
ol{list-style:none;margin:0;padding:0}
ol>li{display:block;border-top:1px solid var(--line);content-visibility:auto;contain-intrinsic-size:auto 2.6rem}
[hidden]{display:none}summary{display:block;padding:.5rem .2rem;cursor:pointer}
summary::before{content:"▸ "/"";color:var(--faint)}[open]>summary::before{content:"▾ "/""}
summary:hover{background:var(--panel)}
summary:focus-visible,input:focus-visible{outline:2px solid var(--bar);outline-offset:1px}
.good b{color:var(--good)}.bad b{color:var(--bad)}.open b{color:var(--open)}
pre,code{font:13px/1.45 ui-monospace,monospace}
pre{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:.6rem;margin:0;max-height:40rem;
overflow:auto;white-space:pre-wrap}
ins{background:var(--added);text-decoration:none}del{background:var(--removed);text-decoration:none}
details>p{margin:.6rem 0}ul{margin:0;padding-left:1.2rem}
"""
REPORT_SCRIPT = """
const search=document.getElementById("search"),problems=document.getElementById("problems");
const count=document.getElementById("count"),texts=new WeakMap();
function textOf(row){if(!texts.has(row))texts.set(row,row.textContent.toLowerCase());return texts.get(row)}
function choose(){
const words=search.value.toLowerCase().split(" ").filter(Boolean),rows=document.querySelectorAll("ol>li");
let shown=0;
for(const row of rows){row.hidden=!words.every(word=>textOf(row).includes(word))||
(problems.checked&&row.className==="good");shown+=!row.hidden}
count.textContent=shown+" of "+rows.length+" calls"}
search.addEventListener("input",choose);problems.addEventListener("change",choose);choose();
"""
