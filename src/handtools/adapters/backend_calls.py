"""File and shell calls for SDKs that have their own tools: raw bytes, read and written through a toolbox.

The calls have the names of our tools, so that policy rules and the journal apply: `read`, `list`, `write`,
`bash`.
"""

import shlex
from base64 import b64decode, b64encode
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import BaseModel

from handtools.core.call import Call
from handtools.core.changes import Change, ChangeSet
from handtools.core.commands import Command, CommandExit, Commands
from handtools.core.context import Context
from handtools.core.errors import TooLarge, ToolError, WrongKind
from handtools.core.files import FileFacts, Files
from handtools.core.result import Result
from handtools.core.tool import AnyTool, tool
from handtools.toolbox import Toolbox
from handtools.tools.bash import BashDetails, BashParams, bash

MAX_READ_BYTES = 64 << 20
NOTHING_THERE = 66
"""Exit code of `removal_script` if the path does not exist."""


def removal_script(path: str) -> str:
    """Return a command that removes a file, symlink or folder.

    A command's changes are captured in an overlay, so the folder can be of any size.
    """
    there = shlex.quote(path)
    return f"test -e {there} || test -L {there} || exit {NOTHING_THERE}; rm -rf -- {there}"


@dataclass(frozen=True, slots=True)
class PathContent:
    """The content of a path, following symlinks: a file's bytes, a folder's entries, or nothing."""

    facts: FileFacts | None
    data: bytes = b""
    entries: tuple[FileFacts, ...] = ()
    real_path: str = ""
    """The resolved path, relative to the workspace."""


@dataclass(frozen=True, slots=True)
class RawExit:
    """How a command ended, and its full output as bytes."""

    end: CommandExit
    output: bytes


class PathParams(BaseModel):
    """Arguments of `read` and `list`."""

    path: str


class PathDetails(BaseModel):
    """The path, kind and size of a file or folder."""

    path: str
    kind: str = ""
    bytes: int = 0


class BytesParams(BaseModel):
    """Arguments of `write`: the full content and its encoding."""

    path: str
    content: str
    encoding: Literal["utf-8", "base64"] = "utf-8"


class BackendCalls:
    """Makes the calls of an SDK's backend; returns the toolbox's results and, separately, the raw bytes.

    The bytes are not part of the results, because the journal stores results.
    """

    def __init__(self, toolbox: Toolbox) -> None:
        self._taken: dict[str, Any] = {}
        theirs = (one for one in self._tools_with_raw_data() if one.name in toolbox.tools)
        self.toolbox = toolbox.with_tools(*theirs)

    async def read_or_list(
        self, tool: Literal["read", "list"], path: str, *, session: str = "default"
    ) -> tuple[Result[Any], PathContent | None]:
        """Read a file or list a folder.

        Returns the call's result and what was found; None if the call was refused.
        """
        return await self._call_returning_raw_data(Call(tool=tool, args={"path": path}, session=session))

    async def write_file(self, path: str, data: bytes, *, session: str = "default") -> Result[Any]:
        """Write a file's full content unchanged, whether or not the file exists."""
        try:
            args = {"path": path, "content": data.decode()}
        except UnicodeDecodeError:
            args = {"path": path, "content": b64encode(data).decode(), "encoding": "base64"}
        return await self.toolbox.call(Call(tool="write", args=args, session=session))

    async def run_command(
        self,
        script: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the command's limit
        env: Mapping[str, str] | None = None,
    ) -> tuple[Result[Any], RawExit | None]:
        """Run a command in the workspace folder.

        Returns the call's result and how the command ended; None if the call was refused.
        """
        args = {"command": script, "cwd": "."} | ({"timeout": timeout} if timeout else {})
        return await self._call_returning_raw_data(Call(tool="bash", args=args, env=env or {}))

    async def _call_returning_raw_data(self, call: Call) -> tuple[Result[Any], Any]:
        try:
            result = await self.toolbox.call(call)
            return result, self._taken.get(call.id)
        finally:
            self._taken.pop(call.id, None)

    def _tools_with_raw_data(self) -> list[AnyTool]:
        @tool(effects=("read",))
        async def read(ctx: Context, params: PathParams) -> Result[PathDetails]:
            facts = await ctx.files.facts(params.path)
            data = b""
            if facts is not None and facts.kind != "folder":
                if facts.bytes > MAX_READ_BYTES:
                    raise TooLarge(
                        f"The file has {facts.bytes:,} bytes, more than {MAX_READ_BYTES:,}.",
                        hint="Use a command.",
                    )
                data = await ctx.files.read(params.path)
            return self._keep_content_and_describe_path(ctx, params, PathContent(facts, data=data))

        @tool(effects=("read",))
        async def list_(ctx: Context, params: PathParams) -> Result[PathDetails]:
            facts = await ctx.files.facts(params.path)
            is_folder = facts is not None and facts.kind == "folder"
            names = await ctx.files.names(params.path) if is_folder else []
            entries = [await _target_facts_of_symlink(ctx.files, one) for one in names]
            return self._keep_content_and_describe_path(
                ctx, params, PathContent(facts, entries=tuple(entries))
            )

        @tool
        async def write(ctx: Context, params: BytesParams) -> Result[PathDetails]:
            after = b64decode(params.content) if params.encoding == "base64" else params.content.encode()
            facts = await ctx.files.facts(params.path)
            if facts is not None and facts.kind == "folder":
                raise WrongKind(f"`{params.path}` is a folder.", hint="Give the path of a file.")
            before = None if facts is None else await ctx.files.read(params.path)
            if before != after:
                await ctx.files.apply(ChangeSet.of(Change.of(params.path, before=before, after=after)))
            path = ctx.files.shown_path(params.path)
            details = PathDetails(path=path, kind="file", bytes=len(after))
            return Result(f"Wrote {path} ({len(after):,} bytes).", details)

        async def run(ctx: Context, params: BashParams) -> Result[BashDetails]:
            heard, commands = copy(ctx), _ExitRecordingCommands(ctx.commands)
            vars(heard)["commands"] = commands
            result = await bash(heard, params)
            if (end := commands.end) is not None:
                output = end.output
                whole = output.head if not output.tail else await ctx.files.read(output.kept)
                self._taken[ctx.call.id] = RawExit(end, whole)
            return result

        return [read, list_, write, replace(bash, run=run)]

    def _keep_content_and_describe_path(
        self, ctx: Context, params: PathParams, path_content: PathContent
    ) -> Result[PathDetails]:
        facts, path = path_content.facts, ctx.files.shown_path(params.path)
        self._taken[ctx.call.id] = replace(path_content, real_path=path)
        if facts is None:
            return Result(f"`{path}` does not exist.", PathDetails(path=path))
        size = (
            f"{len(path_content.entries):,} entries" if facts.kind == "folder" else f"{facts.bytes:,} bytes"
        )
        return Result(f"{path}: {size}.", PathDetails(path=path, kind=facts.kind, bytes=facts.bytes))


class _ExitRecordingCommands:
    """The commands port, wrapped to record how the command ended."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self.end: CommandExit | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._commands, name)

    async def run(self, command: Command) -> CommandExit:
        self.end = await self._commands.run(command)
        return self.end


async def _target_facts_of_symlink(files: Files, facts: FileFacts) -> FileFacts:
    """For a symlink, return its target's facts with the symlink's path; unchanged if the link is broken."""
    if facts.kind != "link":
        return facts
    try:
        target = await files.facts(facts.path)
    except ToolError:
        return facts
    return facts if target is None else replace(target, path=facts.path)
