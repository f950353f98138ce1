"""The examples of the Python API page: each a program, the public names that it shows, and what it prints."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A part of the page: names, and one program in which each of them is used."""

    title: str
    names: tuple[str, ...]
    code: str
    prints: str


PARTS = (
    Part(
        "Toolboxes",
        ("Toolbox", "coding", "reading", "everything"),
        """
import asyncio
from pathlib import Path

from handtools import Toolbox, coding, everything, reading

Path("a.txt").write_text("one\\ntwo\\n")


async def main(toolbox: Toolbox) -> None:
    async with toolbox:
        done = await toolbox.call("edit", {"path": "a.txt", "old_string": "two", "new_string": "2"})
        print(done.status, done.text.splitlines()[0])
        undone = await toolbox.call("undo", {"name": "a.txt"})
        print(undone.status, Path("a.txt").read_text().split())


asyncio.run(main(coding(".")))
print([one.name for one in reading(".").definitions()])
print("lsp" in everything(".").tools)
""",
        """
ok Replaced 1 in a.txt.
ok ['one', 'two']
['read', 'grep', 'find', 'list', 'fetch', 'think', 'now']
True
""",
    ),
    Part(
        "Without async",
        ("BlockingToolbox",),
        """
from handtools import BlockingToolbox, coding

with BlockingToolbox(coding(".")) as tools:
    print(tools.call("bash", {"command": "echo hello"}).text.splitlines()[0])
""",
        """
hello
""",
    ),
    Part(
        "Calls and results",
        ("Call", "CancelToken", "Result", "Text", "Image", "Document"),
        """
from handtools import BlockingToolbox, Call, CancelToken, Document, Image, Result, Text, coding

tools = BlockingToolbox(coding("."))
append = Call(tool="bash", args={"command": "echo x >> log.txt; wc -l < log.txt"}, id="one")
first, again = tools.call(append), tools.call(append)
print(first.text.splitlines()[0], again.text.splitlines()[0], "- the same id runs once")

token = CancelToken()
token.cancel()
print(tools.call("bash", {"command": "sleep 60"}, cancel=token).status)

document = Document(b"%PDF", "application/pdf", "a.pdf")
shown = Result([Text("A chart:"), Image(b"...", "image/png"), document], None)
print(shown.ok, shown.text, [type(block).__name__ for block in shown.content])
""",
        """
1 1 - the same id runs once
cancelled
True A chart: ['Text', 'Image', 'Document']
""",
    ),
    Part(
        "Policy and approval",
        ("Policy", "Rule", "Approval", "Reply"),
        """
from handtools import Approval, BlockingToolbox, Policy, Reply, Rule, coding

look = Rule("look", "ask", "Look first.", effects=frozenset({"change"}), paths=("*.md",))
tools = BlockingToolbox(coding(".", policy=Policy(rules=(look,))))
asked = tools.call("write", {"path": "notes.md", "content": "hello\\n"})
question: Approval = asked.request
print(asked.status, "-", question.title)
print(tools.resume(question.call_id, Reply(True)).status, tools.waiting())
print(tools.why("read", {"path": ".env"}).verdict)
""",
        """
pending - write wants to change notes.md
ok []
deny
""",
    ),
    Part(
        "Tools of your own",
        ("tool", "Tool", "Context", "Change", "ChangeSet", "Node"),
        """
from pydantic import BaseModel

from handtools import BlockingToolbox, Toolbox, local_workspace
from handtools import Change, ChangeSet, Context, Node, Result, Tool, tool


class StampParams(BaseModel):
    path: str


class StampDetails(BaseModel):
    bytes: int


@tool
async def stamp(ctx: Context, params: StampParams) -> Result[StampDetails]:
    \"\"\"Write a file with the session's name.\"\"\"
    after = Node("file", f"{ctx.call.session}\\n".encode())
    await ctx.files.apply(ChangeSet.of(Change(params.path, None, after)))
    return Result(f"Stamped {params.path}.", StampDetails(bytes=after.bytes))


print(isinstance(stamp, Tool), stamp.name)
tools = BlockingToolbox(Toolbox([stamp], workspace=local_workspace(".")))
print(tools.call("stamp", {"path": "stamp.txt"}).text.splitlines()[0])
""",
        """
True stamp
Stamped stamp.txt.
""",
    ),
    Part(
        "Workspaces and settings",
        ("Workspace", "local_workspace", "load_configuration", "Callbacks", "plugins"),
        """
from handtools import Callbacks, Toolbox, Workspace, load_configuration, local_workspace, plugins

configured = load_configuration(".")
workspace: Workspace = local_workspace(".", settings=configured.settings)
toolbox = Toolbox(plugins(), workspace=workspace, policy=configured.policy, callbacks=Callbacks())
print([one.name for one in toolbox.definitions()])
""",
        """
[]
""",
    ),
    Part(
        "Errors",
        ("HandtoolsError", "ToolError", "HostError", "UsageError"),
        """
from handtools import BlockingToolbox, Call, HandtoolsError, HostError, ToolError, UsageError, coding

missing = BlockingToolbox(coding(".")).call("read", {"path": "nowhere.txt"})
print(missing.status, missing.fault.code)  # a `ToolError` of a tool is a result
try:
    Call(tool="read", args={}, id="")
except UsageError as mistake:  # of the program, and raised
    print(isinstance(mistake, HandtoolsError))
print(issubclass(ToolError, HandtoolsError), issubclass(HostError, HandtoolsError))
""",
        """
error not_found
True
True True
""",
    ),
)
