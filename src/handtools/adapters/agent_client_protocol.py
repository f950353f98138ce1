"""Agent Client Protocol: tools for an agent that runs in an editor, including the editor's unsaved buffers.

An agent creates an `EditorSession` in `session/new` and lets it run the model's calls. Text files are read
and written through the editor if it supports `fs`, approval requests become the editor's permission
requests, and calls are reported with `session/update`.
"""

import asyncio
import json
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from functools import partial
from typing import Any, Unpack

import acp
from acp import schema
from anyio import fail_after, from_thread, lowlevel, to_thread

from handtools.adapters.provider_calls import build_provider_call
from handtools.core.approval import Approval, RememberScope, Reply
from handtools.core.call import Call, caller_cancelled_error
from handtools.core.changes import Change
from handtools.core.errors import StorageFault, ToolError, Unavailable, UsageError
from handtools.core.events import Event, Progressed
from handtools.core.result import Result
from handtools.core.tool import AnyTool
from handtools.host.workspace_folders import combined_workspace, real_path
from handtools.runtime.after_call import net_changes
from handtools.runtime.arguments import validate_arguments
from handtools.text.encoding import decode, is_binary, without_surrogates
from handtools.text.visible_text import visible_line
from handtools.toolbox import CODING, Toolbox, ToolboxOptions, local_workspace

EDITOR_SECONDS = 60.0
"""How long to wait for the editor to read or write a file."""
MAX_DIFF_BYTES = 256 << 10
"""Larger files are listed without a diff."""
KINDS: Mapping[str, Any] = {
    **dict.fromkeys(("read", "list", "skill"), "read"),
    **dict.fromkeys(("grep", "find", "lsp", "web_search"), "search"),
    **dict.fromkeys(("edit", "multi_edit", "patch", "write", "undo", "edit_agent"), "edit"),
    **dict.fromkeys(("bash", "jobs"), "execute"),
    **{name: name for name in ("fetch", "think")},
}
"""The protocol's kind of each of our tools; all others are `other`."""
TITLED = ("path", "paths", "command", "pattern", "query", "url", "name", "title")
YES: Mapping[RememberScope, tuple[str, Any]] = {
    "once": ("Allow", "allow_once"),
    "session": ("Always allow in this session", "allow_always"),
    "project": ("Always allow in this project", "allow_always"),
}
"""The ways to approve: for each scope, the option's label and the protocol's kind."""


class EditorSession:
    """The tools in one editor session; `cwd` and `additional_directories` come from `session/new`."""

    def __init__(
        self,
        client: acp.Client,
        session_id: str,
        cwd: str,
        capabilities: schema.ClientCapabilities | None = None,
        *,
        additional_directories: Sequence[str] = (),
        tools: Sequence[AnyTool | str] = CODING,
        **options: Unpack[ToolboxOptions],
    ) -> None:
        self._client, self._id, self._loop = client, session_id, asyncio.get_running_loop()
        self._update = partial(client.session_update, session_id)
        self._running: set[str] = set()
        root = combined_workspace([cwd, *additional_directories])
        # For a single folder, keep the path as the editor wrote it: it may be a symlink.
        several = bool(additional_directories)
        self._absolute = partial(real_path, root=root) if several else partial(os.path.join, cwd)
        fs = capabilities and capabilities.fs
        has_buffers = fs and fs.read_text_file and fs.write_text_file
        buffers = ClientBuffers(client, session_id, self._absolute) if has_buffers else None
        options.setdefault("approver", self._request_permission)
        self.toolbox = Toolbox(tools, workspace=local_workspace(root, buffers=buffers), **options)

    async def call(self, tool: str, args: Mapping[str, Any], provider_id: str = "") -> Result[Any]:
        """Run a tool for the model and report it to the editor.

        A call that is repeated with the same provider id does not run again.
        """
        call = build_provider_call(tool, args, provider_id, self._id)
        named = next((str(args[name]) for name in TITLED if args.get(name)), "")
        given = without_surrogates(json.dumps(dict(args), ensure_ascii=False, default=str))
        begun = {"kind": KINDS.get(tool, "other"), "status": "in_progress", "raw_input": json.loads(given)}
        title, places = visible_line(f"{tool} {named}", 80), self._locations_in_arguments(call)
        await self._update(acp.start_tool_call(call.id, title, locations=places, **begun))
        self._running.add(call.id)
        try:
            result = await self.toolbox.call(call, listener=self._forward_progress)
        finally:
            self._running.discard(call.id)
        touched = result.changes.touched if result.changes else ()
        diffs = await to_thread.run_sync(self._call_diffs_by_path, call.id) if touched else {}
        places = [_tool_call_location(self._absolute(each.path), diffs.get(each.path)) for each in touched]
        status = "completed" if result.ok else "pending" if result.request else "failed"
        ended = {"status": status, "content": [*diffs.values(), _text_content(result.text)]}
        await self._update(acp.update_tool_call(call.id, locations=places or None, **ended))
        return result

    def cancel(self) -> None:
        """Cancel the running calls of the session, for `session/cancel`."""
        for call_id in tuple(self._running):
            self.toolbox.cancel(call_id)

    async def _request_permission(self, approval: Approval) -> Reply | None:
        """Send the user a permission request; None if the editor can't, so that the call stays pending."""
        offered = [scope for scope in YES if scope == "once" or approval.remembered]
        labels = [(scope, *YES[scope]) for scope in offered] + [("reject", "Reject", "reject_once")]
        options = [schema.PermissionOption(option_id=i, name=name, kind=kind) for i, name, kind in labels]
        preview = _text_content(f"{approval.rule}\n\n````\n{approval.preview}\n````")
        about = {"title": without_surrogates(approval.title), "status": "pending", "content": [preview]}
        call = schema.ToolCallUpdate(tool_call_id=approval.call_id, **about)
        try:
            answer = await self._client.request_permission(self._id, tool_call=call, options=options)
        except acp.RequestError:
            return None
        if answer.outcome.outcome == "cancelled":
            raise caller_cancelled_error()
        remember = next((scope for scope in offered if scope == answer.outcome.option_id), None)
        await self._update(acp.update_tool_call(approval.call_id, status="in_progress"))
        return Reply(remember is not None, remember or "once", fingerprint=approval.fingerprint)

    def _forward_progress(self, event: Event) -> None:
        if isinstance(event, Progressed):
            asyncio.run_coroutine_threadsafe(self._show_progress_output(event), self._loop)

    async def _show_progress_output(self, progress: Progressed) -> None:
        if progress.call_id in self._running:  # don't send late output after the call's final update
            await self._update(
                acp.update_tool_call(progress.call_id, content=[_text_content(progress.text)])
            )

    def _locations_in_arguments(self, call: Call) -> list[Any]:
        tool = self.toolbox.tools.get(call.tool)
        try:
            paths = tool.paths(validate_arguments(tool, call.args)) if tool else ()
        except ToolError:
            return []
        return [_tool_call_location(self._absolute(path)) for path in paths]

    def _call_diffs_by_path(self, call_id: str) -> dict[str, Any]:
        """Return the diffs of a call's changes by path, without binary and large files."""
        changes = net_changes(self.toolbox.workspace.journal.entries.changes_of_call(call_id))
        return {
            each.path: diff
            for each in changes
            if (diff := _diff_of_change(each, self._absolute(each.path)))
        }


class ClientBuffers:
    """The `EditorBuffers` port, implemented by the protocol's `fs` methods; only for worker threads."""

    def __init__(self, client: acp.Client, session_id: str, absolute: Callable[[str], str]) -> None:
        self._client, self._id, self._absolute = client, session_id, absolute
        self._token, self._thread = lowlevel.current_token(), threading.get_ident()

    def read(self, path: str) -> str | None:
        """Return a file's text from the editor, including unsaved changes; None if the editor refuses."""
        try:
            return str(self._call_editor(self._client.read_text_file, path).content)
        except acp.RequestError:
            return None

    def write(self, path: str, text: str) -> None:
        """Write a file through the editor, not cancellable; raises `StorageFault` if the editor refuses."""
        try:
            self._call_editor(self._client.write_text_file, path, content=text)
        except acp.RequestError as refusal:
            said = f"The editor did not write `{path}`: {refusal}."
            raise StorageFault(said, hint="Ask the user to check the file in the editor.") from refusal

    def _call_editor(self, method: Callable[..., Awaitable[Any]], path: str, **content: str) -> Any:
        async def ask() -> Any:
            with fail_after(EDITOR_SECONDS, shield=bool(content)):
                return await method(session_id=self._id, path=self._absolute(path), **content)

        if threading.get_ident() == self._thread:
            raise UsageError(
                "Call the editor from a worker thread: the event loop thread reads its responses."
            )
        try:
            return from_thread.run(ask, token=self._token)
        except (asyncio.CancelledError, CancelledError):
            raise caller_cancelled_error() from None
        except (TimeoutError, ConnectionError) as failure:
            raise Unavailable("The editor does not respond.", hint="Tell the user.") from failure


def _text_content(text: str) -> Any:
    return acp.tool_content(acp.text_block(without_surrogates(text)))


def _tool_call_location(path: str, diff: Any = None) -> Any:
    same = os.path.commonprefix([diff.old_text or "", diff.new_text]) if diff else ""  # noqa: RUF071
    return schema.ToolCallLocation(path=path, line=same.count("\n") + 1 if diff else None)


def _diff_of_change(change: Change, path: str) -> Any:
    data = [node.data if node else b"" for node in (change.before, change.after)]
    if any(is_binary(each) or len(each) > MAX_DIFF_BYTES for each in data):
        return None
    old, new = (without_surrogates(decode(each).body) for each in data)
    return acp.tool_diff_content(path, new, old if change.before else None)
