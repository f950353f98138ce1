"""An agent without an SDK: a model is a function from messages and tools to the next message."""

from collections.abc import Awaitable, Callable
from typing import Any

from handtools import Call, Reply, Toolbox

Message = dict[str, Any]
Model = Callable[[list[Message], list[Message]], Awaitable[Message]]
Person = Callable[[str, str], bool]
"""Shown a title and a preview; says yes or no."""


async def run(toolbox: Toolbox, model: Model, person: Person, task: str, session: str) -> list[Message]:
    """Let the model work on a task until it calls no more tools; return the messages."""
    tools = [
        {"name": one.name, "description": one.description, "input_schema": one.input_schema}
        for one in toolbox.definitions()
    ]
    messages: list[Message] = [{"role": "user", "content": task}]
    while True:
        said = await model(messages, tools)
        messages.append(said)
        if not said.get("calls"):
            return messages
        for wanted in said["calls"]:
            call = Call(
                tool=wanted["name"], args=wanted["args"], id=f"{session}-{wanted['id']}", session=session
            )
            result = await toolbox.call(call)
            while (asked := result.request) is not None:
                yes = person(asked.title, asked.preview)
                result = await toolbox.call(call, reply=Reply(yes, fingerprint=asked.fingerprint))
            messages.append({"role": "tool", "id": wanted["id"], "content": result.text, "ok": result.ok})
