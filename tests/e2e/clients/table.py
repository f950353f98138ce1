"""The table of clients and capabilities in docs/how-to/mcp-clients.md: its cells are what the tests expect.

`python -m tests.e2e.clients.table [STEM...]` runs the clients and writes their rows anew.
"""

import re
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from tests.e2e.clients.cells import row
from tests.e2e.clients.client import ROOT, Client
from tests.e2e.clients.reference import refer
from tests.e2e.clients.session import play

PAGE = ROOT / "docs" / "how-to" / "mcp-clients.md"
BEGIN, END = "<!-- clients: measured by tests/e2e/clients -->\n", "<!-- clients: end -->\n"
HERE = Path(__file__).parent


def stems() -> list[str]:
    """The clients: one module each."""
    return sorted(file.stem for file in (HERE / "agents").glob("*.py"))


def client(stem: str) -> Client:
    module = import_module(f"tests.e2e.clients.agents.{stem}")
    (found,) = (
        made
        for made in vars(module).values()
        if isinstance(made, type) and issubclass(made, Client) and made.__module__ == module.__name__
    )
    return found()


def written() -> dict[str, dict[str, str]]:
    """The page's rows, by the client's name."""
    lines = PAGE.read_text().partition(BEGIN)[2].partition(END)[0].strip().splitlines()
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {cells[0]: dict(zip(head[1:], cells[1:], strict=True)) for cells in rows}


def write(rows: dict[str, dict[str, str]]) -> None:
    columns = list(next(iter(rows.values())))
    lines = [["client", *columns], ["---"] * (len(columns) + 1)]
    lines += [
        [name, *cells.values()] for name, cells in sorted(rows.items(), key=lambda each: each[0].lower())
    ]
    table = "".join("| " + " | ".join(line) + " |\n" for line in lines)
    page = PAGE.read_text()
    assert BEGIN in page
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}{table}{END}", page, flags=re.DOTALL))


def main(chosen: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        reference = refer(Path(folder) / "reference")
        rows = written()
        for stem in chosen or stems():
            each = client(stem)
            measured = row(each, play(each, Path(folder) / stem), reference)
            rows[each.name] = {name: measure() for name, measure in measured.items()}
            print(each.name, rows[each.name], flush=True)
            write(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
