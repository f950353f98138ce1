"""The reference page of the walls that a command may meet, made from their table.

`python -m tests.docs.walls_page` writes it.
"""

from pathlib import Path

from handtools.host.commands.restriction_notes import WALLS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "walls.md"
HEAD = """# Walls that a command may meet

<!-- Made from the code by `just docs`: change `host/commands/restriction_notes.py`, not this page. -->

A command that met a wall of the sandbox says which, in one line, and what to send or whom to ask. Some walls we
know ourselves: the proxy knows which host it refused, the layer which files did not land, the supervisor which
limit was passed; their lines name the host, the files, the limit. The others are recognised by what real programs
print, and tested with the programs themselves (`tests/e2e/test_walls.py`). Of a command that ended well only the
last lines are looked at, and lines that a search quoted from a file never are.

| wall | met by | what the model is told |
|---|---|---|
"""
CONDITIONS = {
    "no network": " Where the command lists no hosts.",
    "listed hosts": " Where it lists some.",
    "no terminal": " Where it has no terminal.",
}


def page() -> str:
    """The whole page."""
    said = {
        wall: wall.sentence.replace("{what}", "…") + CONDITIONS.get(wall.condition, "") for wall in WALLS
    }
    rows = [f"| {wall.name} | {wall.met_by} | {sentence} |" for wall, sentence in said.items()]
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
