"""Options that several commands share, so that they are spelt and explained once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Output(StrEnum):
    """How a command that takes arguments as JSON answers."""

    text = "text"
    json = "json"


Workspace = Annotated[
    Path,
    typer.Option("--workspace", "-C", exists=True, file_okay=False, help="The folder the tools work in."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Answer as JSON, for programs.")]
Arguments = Annotated[
    str | None, typer.Option("--json", metavar="JSON", help="The arguments as a JSON object; - reads them.")
]
Pairs = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Arguments one by one; KEY:=JSON for lists and the like."),
]
Answer = Annotated[Output, typer.Option("--output", help="json answers for programs.")]
RunnerName = Annotated[
    str, typer.Option("--runner", help="What commands run under: bubblewrap, container:IMAGE, plain …")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Answer yes to what is asked.")]
CallName = Annotated[str, typer.Argument(metavar="ID", help="A call id, or the start of one.")]

HERE = Path()
