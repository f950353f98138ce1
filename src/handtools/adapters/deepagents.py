"""Deep Agents: a backend, `create_deep_agent(…, backend=ToolboxBackend(coding(".")), checkpointer=…)`.

Its file tools and `execute` then use the toolbox, where calls are confined, recorded and undoable. `/` is
the workspace folder. Calls that need approval interrupt the graph, as in `handtools.adapters.langchain`.
"""

from base64 import b64encode
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from functools import partial, wraps
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

from deepagents.backends.protocol import (
    DeleteResult,
    EditResult,
    ExecuteResponse,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    SandboxBackendProtocol,
    WriteResult,
)

from handtools.adapters.backend_calls import NOTHING_THERE, BackendCalls, PathContent, removal_script
from handtools.adapters.langgraph_calls import call_counts_by_task, call_in_task, session_of_graph_thread
from handtools.core.dialects.bash_result_parts import parse_command_text
from handtools.core.errors import ToolError
from handtools.core.result import Result
from handtools.text.encoding import decode, is_binary, without_surrogates
from handtools.text.lines import split_lines
from handtools.toolbox import Toolbox, run_async_from_sync

NOT_RUN, TIMED_OUT = 126, 124
"""Exit codes for a command that can't be run, as shells report it, or took too long, as `timeout` reports it."""
_TRANSFER_ERRORS = {
    "not_found": "file_not_found", "wrong_kind": "is_directory", "denied": "permission_denied",
    "outside_workspace": "permission_denied", "invalid_input": "invalid_path",
}  # fmt: skip


def error_text(result: Result[Any]) -> str:
    """Return the text of a failed result."""
    return without_surrogates(result.text)


def path_below_slash(path: str) -> str:
    """Return a workspace path as Deep Agents expect it, below `/`."""
    return without_surrogates(f"/{path}")


def ls_result(path: str, result: Result[Any], path_content: PathContent | None) -> LsResult:
    """Return the entries of a folder, or an error."""
    if path_content is None:
        return LsResult(error=error_text(result))
    if path_content.facts is None or path_content.facts.kind != "folder":
        return LsResult(error=f"`{path}` does not exist or is not a folder.")
    return LsResult(
        entries=[
            FileInfo(
                path=path_below_slash(one.path),
                is_dir=one.kind == "folder",
                size=one.bytes,
                modified_at=datetime.fromtimestamp(one.modified, UTC).isoformat(),
            )
            for one in path_content.entries
        ]
    )


def read_result(
    path: str, result: Result[Any], path_content: PathContent | None, offset: int, limit: int
) -> ReadResult:
    """Return a range of lines of a text file, a whole binary file as base64, or an error."""
    if path_content is None:
        return ReadResult(error=error_text(result))
    if path_content.facts is None or path_content.facts.kind == "folder":
        return ReadResult(error=f"`{path}` does not exist or is a folder.")
    if limit <= 0:
        return ReadResult(file_data={"content": "", "encoding": "utf-8"}, no_lines_requested=True)
    if is_binary(path_content.data):
        return ReadResult(
            file_data={"content": b64encode(path_content.data).decode(), "encoding": "base64"}
        )
    return _line_range_result(split_lines(decode(path_content.data).body), max(offset, 0), limit)


def _line_range_result(lines: list[str], offset: int, limit: int) -> ReadResult:
    shown = lines[offset : offset + limit]
    data = {"content": without_surrogates("".join(shown)), "encoding": "utf-8"}
    if not lines:
        return ReadResult(file_data=data)
    if not shown:
        return ReadResult(error=f"The file has only {len(lines):,} lines; read from a smaller offset.")
    end = offset + len(shown)
    return ReadResult(
        file_data=data,
        total_lines=len(lines),
        start_line=offset + 1,
        end_line=end,
        next_offset=end if end < len(lines) else None,
    )


def matches_of_grep_result(result: Result[Any]) -> list[GrepMatch]:
    """Return the matches in one page of `grep` results."""
    return [
        GrepMatch(path=path_below_slash(one.path), line=one.line, text=one.text)
        for one in result.details.hits
    ]


def glob_result(result: Result[Any]) -> GlobResult:
    """Return the files found, and whether there are more."""
    if not result.ok:
        return GlobResult(error=error_text(result))
    found = [FileInfo(path=path_below_slash(one.path), is_dir=False) for one in result.details.entries]
    if result.details.complete:
        return GlobResult(matches=found)
    return GlobResult(matches=found, truncated=True, truncation_reason="budget")


def execute_response(result: Result[Any]) -> ExecuteResponse:
    """Return a command's output and exit code, with our notes on its changes."""
    done = parse_command_text(result)
    if done.timed_out:
        return ExecuteResponse(error_text(result), exit_code=TIMED_OUT)
    if not result.ok:
        return ExecuteResponse(error_text(result), exit_code=NOT_RUN)
    parts = (done.full_output.rstrip("\n"), done.notes)
    return ExecuteResponse(without_surrogates("\n".join(filter(None, parts))), exit_code=done.code)


def to_file_download_response(
    path: str, result: Result[Any], path_content: PathContent | None
) -> FileDownloadResponse:
    """Return the bytes of a file, or why it can't be downloaded."""
    if path_content is None:
        return FileDownloadResponse(path, error=_transfer_error_code(result))
    if path_content.facts is None:
        return FileDownloadResponse(path, error="file_not_found")
    if path_content.facts.kind == "folder":
        return FileDownloadResponse(path, error="is_directory")
    return FileDownloadResponse(path, content=path_content.data)


def upload_response(path: str, result: Result[Any]) -> FileUploadResponse:
    """Return whether a file was written, or why not."""
    return FileUploadResponse(path, error=None if result.ok else _transfer_error_code(result))


def _transfer_error_code(result: Result[Any]) -> str:
    return _TRANSFER_ERRORS.get(result.fault.code if result.fault else "", error_text(result))


MAX_TOKENS = 1_000_000
"""Token limit for results whose text is not used, only their details."""
MAX_MATCHES = 1_000
GREP_PAGE_HITS = 200
P = ParamSpec("P")
R = TypeVar("R")


def _blocking_version(
    method: Callable[Concatenate["ToolboxBackend", P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate["ToolboxBackend", P], R]:
    @wraps(method)
    def wait(self: "ToolboxBackend", /, *args: P.args, **kwargs: P.kwargs) -> R:
        call_counts_by_task()
        return run_async_from_sync(partial(method, self, *args, **kwargs))

    return wait


class ToolboxBackend(SandboxBackendProtocol):  # type: ignore[misc]
    """Backend for the files and commands of a workspace.

    `/` is the workspace folder, but absolute paths as commands print them are accepted too.
    """

    def __init__(self, toolbox: Toolbox) -> None:
        self.toolbox = toolbox.with_tools()
        self._calls = BackendCalls(toolbox)

    @property
    def id(self) -> str:
        return "handtools"

    async def als(self, path: str) -> LsResult:
        """List a folder, without entries that the policy hides."""
        return ls_result(path, *await self._read_or_list("list", path))

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Read a range of lines, or a whole binary file."""
        return read_result(file_path, *await self._read_or_list("read", file_path), offset, limit)

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        """Write a file's full content; fails if the file changed since the agent read it."""
        args = {"path": self._path_for_tools(file_path), "content": content, "mode": "either"}
        result = await call_in_task(self.toolbox, "write", args)
        return WriteResult(path=file_path) if result.ok else WriteResult(error=error_text(result))

    async def aedit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,  # noqa: FBT001, FBT002 - the protocol's
    ) -> EditResult:
        """Replace text with `edit`, which also matches text with different indentation or quotes."""
        args = {"old_string": old_string, "new_string": new_string, "replace_all": replace_all}
        result = await call_in_task(self.toolbox, "edit", {"path": self._path_for_tools(file_path), **args})
        if not result.ok:
            return EditResult(error=error_text(result))
        return EditResult(path=file_path, occurrences=result.details.replaced)

    async def adelete(self, file_path: str) -> DeleteResult:
        """Remove a file, a symlink or a whole folder."""
        ours = self._path_for_tools(file_path)
        if ours == ".":
            return DeleteResult(error="Can't delete the workspace folder.")
        result = await call_in_task(self.toolbox, "bash", {"command": removal_script(ours), "cwd": "."})
        code = parse_command_text(result).code
        if result.ok and code == 0:
            return DeleteResult(path=file_path)
        return DeleteResult(
            error="The path does not exist." if code == NOTHING_THERE else error_text(result)
        )

    async def agrep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> GrepResult:
        """Search for literal text in files that are not ignored."""
        most, cursor = max_count or MAX_MATCHES, None
        matches: list[GrepMatch] = []
        args = {
            "pattern": pattern,
            "path": self._path_for_tools(path or "/"),
            "include": glob,
            "syntax": "literal",
        }
        while True:
            page = {"limit": GREP_PAGE_HITS, "context": 0, "max_tokens": MAX_TOKENS, "cursor": cursor}
            result = await self.toolbox.call("grep", args | page)
            if not result.ok:
                return GrepResult(error=error_text(result))
            matches += matches_of_grep_result(result)
            cursor = result.details.cursor
            if not cursor or len(matches) > most:
                return GrepResult(matches=matches[:most], truncated=len(matches) > most)

    async def aglob(self, pattern: str, path: str | None = None) -> GlobResult:
        args = {"pattern": pattern, "path": self._path_for_tools(path or "/")}
        page = {"limit": MAX_MATCHES, "max_tokens": MAX_TOKENS}
        return glob_result(await self.toolbox.call("find", args | page))

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:  # noqa: ASYNC109
        """Run a command in the workspace folder, sandboxed."""
        args = {"command": command, "cwd": "."} | ({"timeout": timeout} if timeout else {})
        return execute_response(await call_in_task(self.toolbox, "bash", args))

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        session = session_of_graph_thread()
        return [
            upload_response(
                path, await self._calls.write_file(self._path_for_tools(path), data, session=session)
            )
            for path, data in files
        ]

    async def adownload_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return [to_file_download_response(path, *await self._read_or_list("read", path)) for path in paths]

    ls, read, write, edit = (
        _blocking_version(als),
        _blocking_version(aread),
        _blocking_version(awrite),
        _blocking_version(aedit),
    )
    delete, grep, glob = _blocking_version(adelete), _blocking_version(agrep), _blocking_version(aglob)
    execute = _blocking_version(aexecute)
    upload_files, download_files = _blocking_version(aupload_files), _blocking_version(adownload_files)

    async def _read_or_list(
        self, tool: Literal["read", "list"], path: str
    ) -> tuple[Result[Any], PathContent | None]:
        return await self._calls.read_or_list(
            tool, self._path_for_tools(path), session=session_of_graph_thread()
        )

    def _path_for_tools(self, path: str) -> str:
        """Return a path for our tools: unchanged if it is in the workspace, otherwise relative to it."""
        try:
            self.toolbox.workspace.files.locate(path)
        except ToolError:
            return path.lstrip("/") or "."
        return path
