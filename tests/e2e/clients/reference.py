"""What our server answers to a plain client for the same session: the text that every model should see."""

import re
from dataclasses import dataclass
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters

from tests.e2e.clients.client import Place
from tests.e2e.clients.session import TWELVE, lay


@dataclass(frozen=True)
class Reference:
    tools: frozenset[str]
    texts: dict[str, str]


def normal(text: str, place: Place) -> str:
    """Without what differs from run to run: where the folder is, and how long a command took."""
    return re.sub(r"after \d+\.\d s\.", "after SECONDS s.", text.replace(str(place.root), "PLACE"))


def refer(root: Path) -> Reference:
    """Play the twelve steps through the SDK's own client."""
    place = Place(root)
    lay(place)
    return anyio.run(_refer, place)


async def _refer(place: Place) -> Reference:
    command, *args = place.server
    texts = {}
    async with Client(StdioServerParameters(command=command, args=args), mode="legacy") as client:
        listed = frozenset(tool.name for tool in (await client.list_tools()).tools)
        for name, step in TWELVE.items():
            assert isinstance(step.args, dict)
            result = await client.call_tool(step.tool, step.args)
            blocks = [block.text for block in result.content if block.type == "text"]
            texts[name] = normal("\n".join(blocks), place)
    return Reference(listed, texts)
