"""The moving picture of the README: a session at a terminal, drawn from what its commands printed.

`python -m tests.docs.moving_picture` makes it.
"""

import re
import subprocess
import tempfile
import textwrap
from html import escape
from pathlib import Path

from tests.e2e.cli.conftest import HANDTOOLS, Shell

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "undo-and-approve.svg"
WIDTH, LINE, MARGIN, COLUMNS = 860, 20, 16, 96
SECONDS_OF_A_COMMAND, SECONDS_OF_A_LINE, SECONDS_AT_THE_END = 1.2, 0.15, 5.0
STEPS = (
    ("", "ls src"),
    ("an agent goes wrong", "handtools call bash command='rm -rf src'"),
    ("a person takes it back", "handtools undo"),
    ("", "ls src"),
    ("an agent asks", "handtools call write path=.envrc content='export DEBUG=1'"),
    ("a person looks, and allows it", "handtools approve --yes"),
)
IDS = re.compile(r"\b[0-9a-f]{7}\b")
TIME = re.compile(r"after [0-9.]+ s")
STYLE = """
text { font: 14px ui-monospace, Menlo, Consolas, monospace; white-space: pre; fill: #1f2328; }
rect { fill: #f6f8fa; stroke: #d0d7de; }
.typed { font-weight: bold; } .said { fill: #59636e; font-style: italic; }
.added { fill: #1a7f37; } .removed { fill: #cf222e; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } rect { fill: #0d1117; stroke: #30363d; }
  .said { fill: #9198a1; } .added { fill: #3fb950; } .removed { fill: #ff7b72; }
}
g { animation: appear %(whole)ss step-end infinite; opacity: 1; }
@media (prefers-reduced-motion: reduce) { g { animation: none; } }
"""


def session() -> list[tuple[str, str]]:
    """What is typed, said and printed, in order: the class of each line and the line."""
    with tempfile.TemporaryDirectory() as folder:
        shell = Shell(Path(folder) / "work", Path(folder) / "state")
        (shell.folder / "src").mkdir(parents=True)
        for name in ("app.py", "models.py"):
            (shell.folder / "src" / name).write_text("pass\n")
        lines = []
        for said, typed in STEPS:
            lines += [("said", f"# {said}")] if said else []
            lines.append(("typed", f"$ {typed}"))
            printed = subprocess.run(
                ["bash", "-c", typed],
                cwd=shell.folder,
                env=shell.environment
                | {"PATH": f"{Path(HANDTOOLS).parent}:/usr/bin:/bin", "COLUMNS": str(COLUMNS)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,  # one that waits says so by its exit code
                timeout=120,
            ).stdout
            for line in _the_same_each_time(printed).splitlines():
                lines += [(_kind(line), row) for row in textwrap.wrap(line, COLUMNS) or [""]]
    return lines


def _the_same_each_time(printed: str) -> str:
    names = {
        name: f"{number}{'c0ffee' * 2}"[:7]
        for number, name in enumerate(dict.fromkeys(IDS.findall(printed)), 1)
    }
    return TIME.sub("after 0.1 s", IDS.sub(lambda found: names[found[0]], printed))


def _kind(line: str) -> str:
    inside = line.strip("│ ")
    if inside.startswith(("deleted", "Files: deleted", "-")):
        return "removed"
    return "added" if inside.startswith(("returned", "+", "Created")) else "printed"


def picture(lines: list[tuple[str, str]]) -> str:
    """The lines as a drawing in which they appear one after another, again and again."""
    begins, now = [], 0.0
    for kind, _ in lines:
        now += SECONDS_OF_A_COMMAND if kind in {"typed", "said"} else SECONDS_OF_A_LINE
        begins.append(now)
    whole = now + SECONDS_AT_THE_END
    height = 2 * MARGIN + LINE * len(lines)
    rules = "".join(
        f"#l{n} {{ animation-name: a{n}; }} "
        f"@keyframes a{n} {{ 0% {{ opacity: 0; }} {begin / whole:.2%} {{ opacity: 1; }} }}\n"
        for n, begin in enumerate(begins)
    )
    rows = "".join(
        f'<g id="l{n}"><text class="{kind}" x="{MARGIN}" y="{MARGIN + LINE * (n + 1) - 5}">'
        f"{escape(line)}</text></g>\n"
        for n, (kind, line) in enumerate(lines)
    )
    told = "A command that deleted a folder is taken back; a change that asks is shown and allowed."
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{told}">\n'
        f"<style>{STYLE % {'whole': f'{whole:.1f}'}}{rules}</style>\n"
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>\n{rows}</svg>\n'
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(session()), "utf-8")
