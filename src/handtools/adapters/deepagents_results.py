"""Convert our results to those of Deep Agents' backends: entries, line ranges, matches, transfer errors."""

from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

from deepagents.backends.protocol import (
    ExecuteResponse,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    LsResult,
    ReadResult,
)

from handtools.adapters.backend_calls import Looked
from handtools.core.dialects.bash_result_parts import command_text
from handtools.core.result import Result
from handtools.text.encoding import decode, is_binary, without_surrogates
from handtools.text.lines import split_lines

NOT_RUN, TIMED_OUT = 126, 124
"""Conventional exit codes: a shell's for a command that can't be run, and that of `timeout`."""
_TRANSFER_ERRORS = {
    "not_found": "file_not_found", "wrong_kind": "is_directory", "denied": "permission_denied",
    "outside_workspace": "permission_denied", "invalid_input": "invalid_path",
}  # fmt: skip


def error_text(result: Result[Any]) -> str:
    """Return the text of a failed result."""
    return without_surrogates(result.text)


def absolute_path(path: str) -> str:
    """Return a workspace path as Deep Agents expect it, below `/`."""
    return without_surrogates(f"/{path}")


def ls_result(path: str, result: Result[Any], looked: Looked | None) -> LsResult:
    """Return the entries of a folder."""
    if looked is None:
        return LsResult(error=error_text(result))
    if looked.facts is None or looked.facts.kind != "folder":
        return LsResult(error=f"`{path}` does not exist or is not a folder.")
    return LsResult(
        entries=[
            FileInfo(
                path=absolute_path(one.path),
                is_dir=one.kind == "folder",
                size=one.bytes,
                modified_at=datetime.fromtimestamp(one.modified, UTC).isoformat(),
            )
            for one in looked.entries
        ]
    )


def read_result(
    path: str, result: Result[Any], looked: Looked | None, offset: int, limit: int
) -> ReadResult:
    """Return a range of lines of a text file, or a whole binary file as base64."""
    if looked is None:
        return ReadResult(error=error_text(result))
    if looked.facts is None or looked.facts.kind == "folder":
        return ReadResult(error=f"`{path}` does not exist or is a folder.")
    if limit <= 0:
        return ReadResult(file_data={"content": "", "encoding": "utf-8"}, no_lines_requested=True)
    if is_binary(looked.data):
        return ReadResult(file_data={"content": b64encode(looked.data).decode(), "encoding": "base64"})
    return _window(split_lines(decode(looked.data).body), max(offset, 0), limit)


def _window(lines: list[str], offset: int, limit: int) -> ReadResult:
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


def grep_matches(result: Result[Any]) -> list[GrepMatch]:
    """Return the hits of one page."""
    return [
        GrepMatch(path=absolute_path(one.path), line=one.line, text=one.text) for one in result.details.hits
    ]


def glob_result(result: Result[Any]) -> GlobResult:
    """Return the files found, and whether there are more."""
    if not result.ok:
        return GlobResult(error=error_text(result))
    found = [FileInfo(path=absolute_path(one.path), is_dir=False) for one in result.details.entries]
    if result.details.complete:
        return GlobResult(matches=found)
    return GlobResult(matches=found, truncated=True, truncation_reason="budget")


def execute_response(result: Result[Any]) -> ExecuteResponse:
    """Return a command's output, with our notes on its changes."""
    done = command_text(result)
    if done.timed_out:
        return ExecuteResponse(error_text(result), exit_code=TIMED_OUT)
    if not result.ok:
        return ExecuteResponse(error_text(result), exit_code=NOT_RUN)
    parts = (done.output.rstrip("\n"), done.notes)
    return ExecuteResponse(without_surrogates("\n".join(filter(None, parts))), exit_code=done.code)


def to_file_download_response(
    path: str, result: Result[Any], looked: Looked | None
) -> FileDownloadResponse:
    """Return the bytes of a file, or why it can't be downloaded."""
    if looked is None:
        return FileDownloadResponse(path, error=_transfer_error(result))
    if looked.facts is None:
        return FileDownloadResponse(path, error="file_not_found")
    if looked.facts.kind == "folder":
        return FileDownloadResponse(path, error="is_directory")
    return FileDownloadResponse(path, content=looked.data)


def upload_response(path: str, result: Result[Any]) -> FileUploadResponse:
    """Return whether a file was written."""
    return FileUploadResponse(path, error=None if result.ok else _transfer_error(result))


def _transfer_error(result: Result[Any]) -> str:
    return _TRANSFER_ERRORS.get(result.fault.code if result.fault else "", error_text(result))
