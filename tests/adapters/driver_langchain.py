"""LangChain's `create_agent` over LangGraph, with a fake chat model and a checkpointer in memory."""

import secrets

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from handtools.adapters.langchain import tools
from tests.adapters.drivers import Said

VERSION = "langchain"


class FakeModel(GenericFakeChatModel):
    def bind_tools(self, tools, **options):
        return self


def model(*steps):
    return FakeModel(messages=iter([spoken(step) for step in steps]))


def spoken(step):
    if isinstance(step, str):
        return AIMessage(step)
    called = [{"name": one.tool, "args": one.args, "id": one.id} for one in step]
    return AIMessage("", tool_calls=called)


def said(state):
    found = []
    for message in state["messages"]:
        if isinstance(message, ToolMessage):
            blocks = message.content if isinstance(message.content, list) else []
            media = [one["mime_type"] for one in blocks if "mime_type" in one]
            found.append(Said(message.text, message.status == "error", media))
    return found


class Driver:
    async def run(self, box, *calls, conversation=""):
        made = create_agent(model(list(calls), "done"), tools(box), checkpointer=InMemorySaver())
        thread = {"configurable": {"thread_id": conversation or secrets.token_hex(4)}}
        state = await made.ainvoke({"messages": "go"}, thread)
        assert state["messages"][-1].content == "done"
        return said(state)

    async def ask(self, box, call):
        saver, thread = InMemorySaver(), {"configurable": {"thread_id": secrets.token_hex(4)}}
        made = create_agent(model([call]), tools(box), checkpointer=saver)
        state = await made.ainvoke({"messages": "go"}, thread)
        return (saver, thread), state["__interrupt__"][0].value

    async def answer(self, box, paused, *, allow, args=None):
        saver, thread = paused
        made = create_agent(model("done"), tools(box), checkpointer=saver)
        return said(await made.ainvoke(Command(resume={"allow": allow, "args": args}), thread))
