"""Resources: files of the workspace, kept outputs, the log and the open questions, for clients that browse."""

import base64
import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from pydantic import BaseModel, Field

from handtools.core.call import Call
from handtools.core.content import Document
from handtools.core.context import Context
from handtools.core.errors import TooLarge
from handtools.core.result import Result
from handtools.core.tool import tool
from handtools.mcp.desk import Desk
from handtools.mcp.translate import LIST_MS, Json, complete
from handtools.text.encoding import displayed, is_binary
from handtools.toolbox import Toolbox

if TYPE_CHECKING:
    from mcp_types import ReadResourceRequestParams

SCHEME = "handtools://"
FILE, OUTPUT = f"{SCHEME}file/", f"{SCHEME}output/"
JOURNAL, PENDING = f"{SCHEME}journal", f"{SCHEME}pending"
RESOURCE_BYTES = 1 << 20
LISTED = 50
NOT_FOUND = -32002
"""What the protocol answers for a resource that is not there."""


class ResourceParams(BaseModel):
    """What a resource is read by."""

    path: str = Field(description="A path of the workspace, or the name of a kept output.")


class ResourceDetails(BaseModel):
    """What was read."""

    bytes: int


@tool(effects=("read",))
async def resource(ctx: Context, params: ResourceParams) -> Result[ResourceDetails]:
    """Hand over a file as it is."""
    data = await ctx.files.read(params.path, size=RESOURCE_BYTES + 1)
    if len(data) > RESOURCE_BYTES:
        raise TooLarge(f"{params.path} is over {RESOURCE_BYTES:,} bytes.", hint="`read` gives it in parts.")
    kind = "application/octet-stream" if is_binary(data) else "text/plain"
    return Result(Document(data, kind, params.path), ResourceDetails(bytes=len(data)))


class Resources:
    """What a client can browse; a file is read as a call, so it is judged and recorded like any other."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        workspace, policy = desk.toolbox.workspace, desk.toolbox.policy
        self._outputs = workspace.outputs
        self._calls = workspace.journal.calls
        offered = replace(policy, allow=(resource.name,), block=(), unattended="deny")
        self._reader = Toolbox([resource], workspace=workspace, policy=offered)

    async def list(self, _ctx: object, _params: object) -> Json:
        """Answer `resources/list`."""
        kept = await to_thread.run_sync(self._outputs.names)
        outputs = [
            _described(f"{OUTPUT}{name}", name, "A whole output that was too long.") for name in kept
        ]
        own = [
            _described(JOURNAL, "journal", "The newest calls, and how they ended.", "application/json"),
            _described(PENDING, "pending", "Calls that wait for a person.", "application/json"),
        ]
        return complete({"resources": own + outputs[-LISTED:]}, keep_ms=0)

    async def templates(self, _ctx: object, _params: object) -> Json:
        """Answer `resources/templates/list`."""
        templates = [
            {"uriTemplate": f"{FILE}{{+path}}", "name": "file", "description": "A file of the workspace."},
            {"uriTemplate": f"{OUTPUT}{{name}}", "name": "output", "description": "A kept output."},
        ]
        return complete({"resourceTemplates": templates}, keep_ms=LIST_MS)

    async def read(self, _ctx: object, params: "ReadResourceRequestParams") -> Json:
        """Answer `resources/read`."""
        from urllib.parse import unquote

        uri = str(params.uri)
        if uri == JOURNAL:
            page = await to_thread.run_sync(lambda: self._calls.page(limit=LISTED))
            return _json(uri, [asdict(call) for call in page])
        if uri == PENDING:
            return _json(uri, [asdict(approval) for approval in await self._desk.attended.waiting()])
        if uri.startswith(OUTPUT):
            return await self._handed(uri, f"output:{unquote(uri.removeprefix(OUTPUT))}")
        if uri.startswith(FILE):
            return await self._handed(uri, unquote(uri.removeprefix(FILE)))
        raise _missing(f"{uri} is no resource of this server.")

    async def _handed(self, uri: str, path: str) -> Json:
        call = Call(
            tool=resource.name, args={"path": path}, session=self._desk.session, agent=self._desk.agent
        )
        result = await self._reader.call(call)
        if not result.ok:
            raise _missing(result.text)
        (document,) = result.content
        assert isinstance(document, Document)
        content: Json = {"uri": uri, "mimeType": document.media_type}
        if document.media_type == "text/plain":
            content["text"] = displayed(document.data.decode("utf-8", "replace"))
        else:
            content["blob"] = base64.b64encode(document.data).decode()
        return complete({"contents": [content]}, keep_ms=0)


def _described(uri: str, name: str, description: str, kind: str = "text/plain") -> Json:
    return {"uri": uri, "name": name, "description": description, "mimeType": kind}


def _json(uri: str, value: Any) -> Json:
    content = {"uri": uri, "mimeType": "application/json", "text": json.dumps(value, indent=1)}
    return complete({"contents": [content]}, keep_ms=0)


def _missing(message: str) -> Exception:
    from mcp.shared.exceptions import MCPError

    return MCPError(code=NOT_FOUND, message=displayed(message))
