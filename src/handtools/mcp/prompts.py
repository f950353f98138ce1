"""Prompts: requests that people make often, filled in with what is on record."""

from typing import TYPE_CHECKING

from anyio import to_thread

from handtools.mcp.desk import Desk
from handtools.mcp.translate import LIST_MS, Json, complete
from handtools.text.encoding import displayed

if TYPE_CHECKING:
    from mcp_types import GetPromptRequestParams

INVALID = -32602
CALLS = 40
OFFERED: dict[str, str] = {
    "review": "Check what was changed in this workspace lately, and undo what should not stay.",
    "pending": "Explain the calls that wait for a person's answer.",
}


class Prompts:
    """Prompts over one workspace's record."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def list(self, _ctx: object, _params: object) -> Json:
        """Answer `prompts/list`."""
        listed = [{"name": name, "description": told} for name, told in OFFERED.items()]
        return complete({"prompts": listed}, keep_ms=LIST_MS)

    async def get(self, _ctx: object, params: "GetPromptRequestParams") -> Json:
        """Answer `prompts/get`."""
        if params.name == "review":
            text = await to_thread.run_sync(self._review)
        elif params.name == "pending":
            text = await self._pending()
        else:
            from mcp.shared.exceptions import MCPError

            raise MCPError(
                code=INVALID, message=f"No prompt {params.name!r}. There are: {', '.join(OFFERED)}."
            )
        message = {"role": "user", "content": {"type": "text", "text": displayed(text)}}
        return complete({"description": OFFERED[params.name], "messages": [message]})

    def _review(self) -> str:
        page = self._desk.toolbox.workspace.journal.calls.page(limit=CALLS)
        changing = {name for name, tool in self._desk.toolbox.tools.items() if not tool.reads_only}
        lines = [
            f"- {call.id[:8]} {call.tool} {call.args.get('path', '')} ({call.status})"
            for call in page
            if call.tool in changing
        ]
        listed = "\n".join(lines) or "(nothing was changed)"
        return (
            f"These calls changed this workspace, newest first:\n{listed}\n\n"
            "Read what they touched, say in a few sentences what changed and whether it is right, "
            "and use `undo` for what should not stay, after asking me."
        )

    async def _pending(self) -> str:
        waiting = await self._desk.attended.waiting()
        parts = [f"## {a.title}\nAsked: {a.rule}\n\n{a.preview}" for a in waiting]
        shown = "\n\n".join(parts) or "(nothing waits)"
        return f"These calls wait for my answer. Explain each in a sentence, and its risk:\n\n{shown}"
