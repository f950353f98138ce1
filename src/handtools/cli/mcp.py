"""`handtools mcp`: the tools for a client that starts us and talks over stdin and stdout."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from handtools.cli import options


class Preset(StrEnum):
    """Which tools are offered."""

    reading = "reading"
    coding = "coding"
    everything = "everything"


class Unattended(StrEnum):
    """What happens to a question that nobody can be asked."""

    ask = "ask"
    deny = "deny"
    allow = "allow"


PresetOption = Annotated[Preset, typer.Option(help="Which tools are offered.")]
UnattendedOption = Annotated[
    Unattended | None,
    typer.Option(help="When the client can't ask: ask leaves the call to `handtools approve`."),
]
PolicyOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="What may be done, instead of ~/.config/handtools/policy.toml."),
]
BlockOption = Annotated[list[str] | None, typer.Option("--block", help="A tool that is never offered.")]

SamplingOption = Annotated[
    bool, typer.Option("--sampling", help="Let `edit_agent` use a model that the client lends.")
]


def mcp(
    folder: Annotated[Path, typer.Argument(help="The folder the tools work in.")] = Path(),
    *,
    preset: PresetOption = Preset.coding,
    policy: PolicyOption = None,
    unattended: UnattendedOption = None,
    block: BlockOption = None,
    runner: options.RunnerName = "",
    sampling: SamplingOption = False,
) -> None:
    """Serve the tools over MCP on stdin and stdout.

    This is what `handtools install CLIENT` puts into a client's configuration.
    """
    from handtools.cli.serving import serve_folder

    serve_folder(
        str(folder),
        preset=preset,
        policy=policy,
        unattended=unattended,
        block=block or (),
        runner=runner,
        sampling=sampling,
    )
