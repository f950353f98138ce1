"""An agent for editors that speak the Agent Client Protocol, which start it; its model is a script."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any

import acp
from acp.schema import ClientCapabilities, InitializeResponse, NewSessionResponse, PromptResponse

from handtools.adapters.agent_client_protocol import EditorSession
from handtools.core.result import Result


async def model(task: str, results: list[Result[Any]]) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Yield the next call of a tool, as a model would that was told the task and the results so far."""
    yield "think", {"thought": f"I am asked: {task}"}
    yield "grep", {"pattern": "TODO", "mode": "files"}
    if results[-1].details.files:
        path = results[-1].details.files[0].path
        yield "edit", {"path": path, "old_string": "TODO", "new_string": "done"}


class EditorAgent(acp.Agent):
    def __init__(self) -> None:
        self.sessions: dict[str, EditorSession] = {}
        self.capabilities: ClientCapabilities | None = None

    def on_connect(self, conn: acp.Client) -> None:
        self.client = conn

    async def initialize(
        self, protocol_version: int, client_capabilities: ClientCapabilities | None = None, **_: Any
    ) -> InitializeResponse:
        self.capabilities = client_capabilities
        return InitializeResponse(protocol_version=min(protocol_version, acp.PROTOCOL_VERSION))

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        session_id = secrets.token_hex(8)
        self.sessions[session_id] = EditorSession(self.client, session_id, cwd, self.capabilities)
        return NewSessionResponse(session_id=session_id)

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        results: list[Result[Any]] = []
        task = " ".join(block.text for block in prompt if block.type == "text")
        async for tool, args in model(task, results):
            results.append(await self.sessions[session_id].call(tool, args))
            if results[-1].status == "cancelled":
                return PromptResponse(stop_reason="cancelled")
        said = acp.update_agent_message_text(f"{len(results)} calls.")
        await self.client.session_update(session_id, said)
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.sessions[session_id].cancel()


if __name__ == "__main__":
    asyncio.run(acp.run_agent(EditorAgent()))
