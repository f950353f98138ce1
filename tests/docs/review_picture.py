"""The picture of a review in its how-to: what the command drew on a terminal of 80 by 24, as a drawing.

`python -m tests.docs.review_picture` makes it.
"""

import io
import os
import re
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from handtools import Call
from handtools.toolbox import BlockingToolbox, coding
from tests.e2e.cli.conftest import Shell
from tests.e2e.cli.test_asking import at_terminal

PICTURE = Path(__file__).parents[2] / "docs" / "how-to" / "review.svg"
BEFORE = """\
def greeting(name):
    return "Hello " + name


def parting(name):
    # My own words are not asked about.
    return "Good bye, " + name


def main():
    print(greeting("world"))
    print(parting("world"))
"""
# A font that is fetched would be a request to somewhere.
FONTS_AND_REMARKS = re.compile(r"@font-face \{\{.*?\}\}\s*|<!--.*?-->\s*", re.DOTALL)
REMARK = re.compile(r"(handtools undo )[0-9a-f]+")


def terminal_rows() -> str:
    """What a person sees who keeps the first change and takes the second back."""
    with tempfile.TemporaryDirectory() as folder:
        shell = Shell(Path(folder) / "work", Path(folder) / "state")
        shell.folder.mkdir()
        file = shell.folder / "greet.py"
        file.write_text(BEFORE.replace("My own words are not asked about.", ""))
        kept = os.environ.get("HANDTOOLS_STATE")
        os.environ["HANDTOOLS_STATE"] = str(shell.state)
        try:
            with BlockingToolbox(coding(shell.folder)) as box:
                for name, old, new in (
                    ("1f0c3aa", '"Hello " + name', 'f"Hello, {name}!"'),
                    ("8b2d417", 'print(parting("world"))', 'print(parting("everybody"))'),
                ):
                    args = {"path": "greet.py", "old_string": old, "new_string": new}
                    assert box.call(Call(tool="edit", args=args, id=name, agent="ann")).ok
                    # Between the two the person writes a comment.
                    words = file.read_text().replace(
                        "    # \n", "    # My own words are not asked about.\n"
                    )
                    file.write_text(words)
        finally:
            if kept is None:
                del os.environ["HANDTOOLS_STATE"]
            else:
                os.environ["HANDTOOLS_STATE"] = kept
        # Typed when the whole prompt is there: an echo within it would be another picture.
        answers = [(",j,J,g,/,e,p,?]?\x1b[0m ", "y\n"), (",k,K,g,/,e,p,?]?\x1b[0m ", "n\n")]
        screen = {"COLUMNS": "80", "LINES": "24", "TERM": "xterm-256color"}
        code, seen = at_terminal(shell, "review", answers=answers, **screen)
        assert code == 0, seen
    # The id of the person's own call is another one each time.
    return REMARK.sub(r"\g<1>5c0ffee", seen.replace("\r\n", "\n").strip("\n"))


def picture() -> str:
    """The drawing."""
    console = Console(record=True, width=80, file=io.StringIO(), force_terminal=True)
    console.print(Text.assemble(("$ handtools review\n", "bold"), Text.from_ansi(terminal_rows())))
    return console.export_svg(
        title="handtools review",
        unique_id="review",
        code_format=FONTS_AND_REMARKS.sub("", CONSOLE_SVG_FORMAT),
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), "utf-8")
