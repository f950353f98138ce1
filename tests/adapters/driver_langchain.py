"""LangChain's `create_agent` over LangGraph, with a fake chat model and a checkpointer in an SQLite file."""

import json
import secrets
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from handtools.adapters.langchain import MalformedCalls, tools
from tests.adapters.drivers import Said

VERSION = "langchain langgraph"


class FakeModel(GenericFakeChatModel):
    def bind_tools(self, tools, **options):
        return self


def scripted_model(*steps):
    return FakeModel(messages=iter([spoken(step) for step in steps]))


def spoken(step):
    if isinstance(step, str):
        return AIMessage(step)
    whole = [
        {"name": one.tool, "args": one.args, "id": one.id} for one in step if not isinstance(one.args, str)
    ]
    broken = [
        {"name": one.tool, "args": one.args, "id": one.id, "error": "Not JSON."}
        for one in step
        if isinstance(one.args, str)
    ]
    return AIMessage("", tool_calls=whole, invalid_tool_calls=broken)


@asynccontextmanager
async def agent(database, box, *steps):
    async with AsyncSqliteSaver.from_conn_string(str(database)) as saver:
        yield create_agent(
            scripted_model(*steps), tools(box), middleware=[MalformedCalls()], checkpointer=saver
        )


def new_database():
    return Path(tempfile.mkdtemp()) / "checkpoints.sqlite"


def thread(conversation):
    return {"configurable": {"thread_id": conversation}}


def said(state):
    found = []
    for message in state["messages"]:
        if isinstance(message, ToolMessage):
            blocks = message.content if isinstance(message.content, list) else []
            media = [one["mime_type"] for one in blocks if "mime_type" in one]
            found.append(Said(message.text, message.status == "error", media))
    return found


class Driver:
    def __init__(self):
        self.databases = {}

    async def run(self, box, *calls, conversation=""):
        conversation = conversation or secrets.token_hex(4)
        database = self.databases[conversation] = new_database()
        async with agent(database, box, list(calls), "done") as made:
            state = await made.ainvoke({"messages": "go"}, thread(conversation))
        assert state["messages"][-1].content == "done"
        return said(state)

    async def go_on(self, box, *calls, conversation):
        async with agent(self.databases[conversation], box, "done") as made:
            state = await made.ainvoke(None, thread(conversation))
        assert state["messages"][-1].content == "done"
        return said(state)

    async def ask(self, box, call):
        database, conversation = new_database(), secrets.token_hex(4)
        async with agent(database, box, [call]) as made:
            state = await made.ainvoke({"messages": "go"}, thread(conversation))
        return (database, conversation), state["__interrupt__"][0].value

    async def answer(self, box, paused, *, allow, args=None):
        database, conversation = paused
        async with agent(database, box, "done") as made:
            answer = Command(resume={"allow": allow, "args": args})
            return said(await made.ainvoke(answer, thread(conversation)))

    def dump(self, paused):
        database, conversation = paused
        return json.dumps([str(database), conversation]).encode()

    def load(self, data):
        return json.loads(data)
