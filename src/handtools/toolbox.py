"""The `Toolbox`, which combines tools, a workspace and a policy; for synchronous code, `BlockingToolbox`."""

import copy
import logging
import os
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypedDict, TypeVar, Unpack

from anyio import to_thread
from anyio.from_thread import BlockingPortalProvider

from handtools.configuration import Settings
from handtools.core.approval import Approval, Approver, Reply
from handtools.core.call import Call, CancelToken, CancelTokens
from handtools.core.callbacks import Callbacks
from handtools.core.dialects import DialectName
from handtools.core.errors import ToolError, UsageError
from handtools.core.events import EventListener
from handtools.core.files import EditorBuffers, HostFiles
from handtools.core.result import Result
from handtools.core.tool import (
    AnyTool,
    SchemaDialect,
    Tool,
    json_schema,
    narrowed_schema,
    schema_with_tool_names,
    with_tool_names,
)
from handtools.host.files.boot import boot_if_lasting
from handtools.host.files.file_locks import FileLocks
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.host.files.local_files import LocalFiles
from handtools.host.programs import installation_folders_in_workspace
from handtools.host.workspace_folders import OneOrMoreFolders, combined_workspace, workspace_folders
from handtools.local_journal import open_local_journal
from handtools.runtime.approval.questions import wait_for_reply
from handtools.runtime.event_delivery import EventAnnouncer
from handtools.runtime.executor import Executor, decide_hypothetical_call
from handtools.runtime.policy import Policy
from handtools.runtime.policy.rules import Decision, Rule, check_words
from handtools.runtime.workspace import PortOnUse, Workspace

if TYPE_CHECKING:
    from handtools.core.commands import HostCommands
    from handtools.core.dialects.dialect_tool import DialectTool
    from handtools.core.language import Formatters, HostLanguage
    from handtools.core.media import Media
    from handtools.core.search import HostSearch
    from handtools.core.skills import HostSkills
    from handtools.core.syntax import Syntax
    from handtools.core.web import HostWeb
    from handtools.host.sandbox.launch import Runner

logger = logging.getLogger("handtools")
READING = ("read", "grep", "find", "list", "fetch", "web_search", "think", "now")
CODING = (
    "read", "grep", "find", "list", "edit", "multi_edit", "patch", "write", "bash", "jobs", "undo", "think", "now",
)  # fmt: skip
EVERYTHING = (*CODING, "lsp", "edit_agent", "skill", "fetch", "web_search", "attach", "task")
EDITORS = ("str_replace_editor", "str_replace_based_edit_tool")
"""Tools that are offered only in vendors' dialects; `in_dialect` adds them to the toolbox."""
RUNNER_VARIABLE = "HANDTOOLS_RUNNER"
"""Environment variable that names the default command runner."""
INSTALLATION_REASON = "handtools itself runs from there, so changed code would run outside the sandbox."
INSTALLATION_WARNING = (
    "handtools runs from the workspace (%s): sandboxed commands can't change it, and tools need approval."
)
WITHDRAWN_HINT = "Ask the user what to do instead."
PLUGIN_GROUP = "handtools.tools"
"""Entry point group in which other packages register tools."""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """Definition of a tool for a model: name, description and schemas."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    reads_only: bool
    type: str = ""
    """The type name of a tool that is built into the vendor's API; empty for all others."""
    vendor_definition: Mapping[str, Any] = field(default_factory=dict)
    """What to send for a tool built into the vendor's API, instead of name, description and schema."""


def built_in_tool(name: str) -> AnyTool:
    """Import a built-in tool by its name."""
    if name in EDITORS:
        from handtools.tools.text_editor import TEXT_EDITORS

        return TEXT_EDITORS[name]
    check_words("The toolbox", "built-in tool", [name], EVERYTHING)
    module = import_module(f"handtools.tools.{name}")
    found: AnyTool = getattr(module, "list_" if name == "list" else name)
    return found


class ToolsByName(Mapping[str, AnyTool]):
    """The tools of a toolbox by name. One given only by its name is imported when it is first looked up."""

    def __init__(self, tools: Iterable[AnyTool | str]) -> None:
        self._tools = {tool if isinstance(tool, str) else tool.name: tool for tool in tools}

    def __getitem__(self, name: str) -> AnyTool:
        found = self._tools[name]
        if isinstance(found, str):
            found = self._tools[name] = built_in_tool(found)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def with_tools(self, tools: Iterable[AnyTool | str]) -> "ToolsByName":
        """Return these and more tools; one of the same name replaces the one here."""
        return ToolsByName((*self._tools.values(), *tools))


class Toolbox:
    """Runs tool calls in a workspace under a policy, with approval, journal and undo.

    The main entry point.
    """

    def __init__(
        self,
        tools: Sequence[AnyTool | str],
        *,
        workspace: Workspace,
        policy: Policy | None = None,
        approver: Approver | None = None,
        callbacks: Callbacks | None = None,
        listeners: Iterable[EventListener] = (),
        clock: Callable[[], datetime] = lambda: datetime.now().astimezone(),
        timeout: float = 600.0,
    ) -> None:
        """A built-in tool can be given by its name, such as `"read"`; it is imported when it is first used."""
        named = ToolsByName(tools)
        if len(named) != len(tools):
            raise UsageError("Two tools have the same name; tool names in a toolbox must be unique.")
        self.tools = named
        self.workspace = workspace
        self.policy = _with_rules(policy or Policy(), workspace)
        check_tool_names(self.policy, named)
        self.callbacks = callbacks or Callbacks()
        self._executor = Executor(
            tools=named,
            workspace=workspace,
            policy=self.policy,
            approver=approver,
            callbacks=self.callbacks,
            announcer=EventAnnouncer(tuple(listeners)),
            clock=clock,
            timeout=timeout,
        )
        self._cancels = CancelTokens()
        self._meant: dict[str, str] = {}
        """Maps the names under which tools are offered to their original names."""
        self._dialect: dict[str, DialectTool] = {}
        """The vendor's tools by name, offered instead of the original tools; empty without a dialect."""

    async def call(
        self,
        tool_call: str | Call,
        args: Mapping[str, Any] | None = None,
        *,
        reply: Reply | None = None,
        cancel: CancelToken | None = None,
        listener: EventListener | None = None,
    ) -> Result[Any]:
        """Run a tool by name, or a `Call`; expected failures are returned as results.

        `reply` is an answer that the caller already has: to the approval request that the call is waiting
        for, or to the first one that it makes. The `listener` receives the events of this call only.
        """
        fresh = isinstance(tool_call, str)
        call = Call(tool=tool_call, args=args or {}) if isinstance(tool_call, str) else tool_call
        call = replace(call, tool=self._meant[call.tool]) if call.tool in self._meant else call
        with self._cancels.registered(call.id, cancel) as token:

            async def run(our_call: Call, reply: Reply | None) -> Result[Any]:
                with self._executor.announcer.listen_to_call(our_call.id, listener):
                    return await self._executor.call(our_call, token, fresh=fresh, reply=reply)

            row = self._dialect.get(call.tool)
            if row is None:
                return await run(call, reply)
            from handtools.runtime.dialect_calls import call_in_dialect

            return await call_in_dialect(row, call, run, reply=reply, settled=self._executor.is_settled)

    async def resume(
        self,
        call_id: str,
        reply: Reply,
        *,
        cancel: CancelToken | None = None,
        listener: EventListener | None = None,
    ) -> Result[Any]:
        """Answer a pending call with the user's reply, even from another process or after a restart."""
        with (
            self._cancels.registered(call_id, cancel) as token,
            self._executor.announcer.listen_to_call(call_id, listener),
        ):
            return await self._executor.resume(call_id, reply, token)

    async def withdraw(self, call_id: str, reason: str = "") -> bool:
        """Withdraw the approval request of a pending call; False if the call is not pending.

        Nothing is run. Calling again with the same id makes a new approval request.
        """
        return await self._executor.withdraw(call_id, reason or WITHDRAWN_HINT)

    async def answer_from_elsewhere(self, call_id: str, *, only_if_watched: bool = False) -> Reply | None:
        """Wait until a pending call is answered in another process; return the reply for `resume`.

        Return None if the call was already answered and has ended. With `only_if_watched`, also return None
        as soon as no `handtools watch` is open.
        """
        return await wait_for_reply(self.workspace.journal, call_id, only_if_watched=only_if_watched)

    def cancel(self, call_id: str) -> bool:
        """Cancel a running or resumed call by its id, from any thread.

        False if this toolbox is not running it.
        """
        return self._cancels.cancel(call_id)

    async def waiting(self) -> list[Approval]:
        """Return the approval requests that are still unanswered."""
        return await to_thread.run_sync(self.workspace.journal.calls.waiting)

    async def why(self, tool: str, args: Mapping[str, Any]) -> Decision:
        """Return the policy's decision on a hypothetical call, without running it.

        Never raises `ToolError`.
        """
        call = Call(tool=self._meant.get(tool, tool), args=args)
        if row := self._dialect.get(call.tool):
            from handtools.runtime.dialect_calls import call_of_ours, calls_of_ours

            try:
                call = call_of_ours(call, 0, next(calls_of_ours(row, call)))
            except ToolError as failure:
                return Decision("deny", "not a valid call", str(failure))
        return await decide_hypothetical_call(self._executor, call)

    def definitions(self, dialect: SchemaDialect | DialectName = "plain") -> list[ToolDefinition]:
        """Return the offered tools' definitions for a model, in a schema dialect or a vendor's dialect.

        To run calls in a vendor's dialect, use the toolbox that `in_dialect` returns.
        """
        match dialect:
            case "plain" | "strict" | "gemini":
                return self._definitions(dialect)
            case _:
                return self.in_dialect(dialect).definitions()

    def _definitions(self, dialect: SchemaDialect) -> list[ToolDefinition]:
        offered = self._executor.offered()
        beside = {tool.name: tool for tool in offered}
        if self._dialect:
            rows = (row for row in self._dialect.values() if beside.keys() >= set(row.tools))
            return [self._vendor_definition(row, dialect, beside) for row in rows]
        return [self._definition(tool, dialect, beside) for tool in offered]

    def _vendor_definition(
        self, dialect_tool: "DialectTool", dialect: SchemaDialect, offered: Mapping[str, AnyTool]
    ) -> ToolDefinition:
        shown = {name: other for other, name in self._meant.items()}
        return ToolDefinition(
            shown.get(dialect_tool.name, dialect_tool.name),
            dialect_tool.description,
            narrowed_schema(dialect_tool.schema, dialect),
            json_schema(offered[dialect_tool.tools[0]].details),
            all(offered[name].reads_only for name in dialect_tool.tools),
            dialect_tool.definition.get("type", ""),
            copy.deepcopy(dict(dialect_tool.definition)),
        )

    def _definition(self, tool: AnyTool, dialect: SchemaDialect, beside: Collection[str]) -> ToolDefinition:
        names, own = self._executor.names, set(tool.params.model_fields)
        return ToolDefinition(
            names.get(tool.name, tool.name),
            with_tool_names(tool.prompt_beside(beside), names, own),
            schema_with_tool_names(json_schema(tool.params, dialect), names, own),
            json_schema(tool.details),
            tool.reads_only,
            tool.vendor_type,
        )

    def listen(self, listener: EventListener) -> None:
        """Add a listener for all later events; slow or failing listeners don't delay calls."""
        self._executor.announcer.listen(listener)

    def under(self, policy: Policy, *, approver: Approver | None = None) -> Self:
        """Return a toolbox with the same tools and workspace but another policy, for another agent."""
        executor = self._executor
        view = copy.copy(self)
        view.policy = _with_rules(policy, self.workspace)
        check_tool_names(view.policy, self.tools)
        view._executor = replace(  # noqa: SLF001 - also a Toolbox
            executor, policy=view.policy, approver=approver, announcer=executor.announcer.copy()
        )
        return view

    def renamed(self, names: Mapping[str, str] | Callable[[str], str]) -> "Toolbox":
        """Return a toolbox that offers tools to the model under other names, such as with a prefix.

        Prompts and `call` use the new names. Policy and journal keep the original names.
        """
        new = names if callable(names) else lambda name: names.get(name, name)
        shown = {name: new(name) for name in self._dialect or self.tools}
        if len(set(shown.values())) != len(shown):
            raise UsageError("Two tools would have the same name; tool names in a toolbox must be unique.")
        view = copy.copy(self)
        view._meant = {other: name for name, other in shown.items()}  # noqa: SLF001 - also a Toolbox
        if not self._dialect:
            view._executor = replace(self._executor, names=shown)  # noqa: SLF001
        return view

    def in_dialect(self, dialect: DialectName) -> "Toolbox":
        """Return a toolbox whose definitions, arguments and results have the shape of a vendor's tools.

        A vendor's tool is offered if all of our tools that it maps to are offered. Policy and journal use
        our tool names, and `call` also accepts them unless the dialect has a tool of that name.
        """
        from handtools.core.dialects.all_dialects import DIALECTS

        if dialect not in DIALECTS:
            raise UsageError(f"Unknown dialect {dialect!r}. Available: {', '.join(DIALECTS)}.")
        rows = {row.name: row for row in DIALECTS[dialect]}
        needed = {name for row in rows.values() for name in row.tools}
        view = copy.copy(self)
        view.tools = self.tools.with_tools(
            name for name in EDITORS if name in needed and name not in self.tools
        )
        view._dialect, view._meant = rows, {}  # noqa: SLF001 - also a Toolbox
        names = {row.tools[0]: row.name for row in reversed(rows.values())}
        view._executor = replace(self._executor, tools=view.tools, names=names)  # noqa: SLF001
        return view

    def with_tools(self, *tools: AnyTool | str) -> "Toolbox":
        """Return a toolbox with additional tools, which replace tools of the same name.

        It uses our own names and shapes, even if this toolbox is renamed or in a dialect.
        """
        view = copy.copy(self)
        view.tools = self.tools.with_tools(tools)
        view._dialect, view._meant = {}, {}  # noqa: SLF001 - also a Toolbox
        view._executor = replace(self._executor, tools=view.tools, names={})  # noqa: SLF001
        return view

    def owned_by(self, owner: str) -> Self:
        """Return a toolbox restricted to one owner's records, for users who share the workspace."""
        view = copy.copy(self)
        view.workspace = self.workspace.owned_by(owner)
        view._executor = replace(self._executor, workspace=view.workspace)  # noqa: SLF001 - also a Toolbox
        return view

    def look_ahead(self) -> None:
        """Prepare the first command in the background, if `bash` is offered.

        Importing the sandbox takes a while, so call this in a thread.
        """
        bash = self.tools.get("bash")
        if bash is None or not self._executor.offers(bash):
            return
        from handtools.host.commands.local_commands import LocalCommands

        if isinstance(commands := self.workspace.commands, LocalCommands):
            commands.look_ahead(
                private_globs=self.policy.hidden_globs, read_only_globs=self.policy.read_only_globs
            )

    async def aclose(self) -> None:
        """Close files and processes; using the toolbox again reopens them."""
        await to_thread.run_sync(self._close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _close(self) -> None:
        self._executor.announcer.drain(1.0)
        self.workspace.close()


def local_workspace(
    root: OneOrMoreFolders,
    *,
    files: HostFiles | None = None,
    buffers: EditorBuffers | None = None,
    state: str | Path | None = None,
    commands: "HostCommands | None" = None,
    runner: str = "",
    readable: Iterable[str | Path] = (),
    separate_streams: bool = False,
    settings: Settings | None = None,
    language: "HostLanguage | None" = None,
    formatters: "Formatters | None" = None,
    skills: "HostSkills | None" = None,
    web: "HostWeb | None" = None,
) -> Workspace:
    """Make a workspace from a local folder, with its journal in the user's state folder.

    Several folders make one workspace, in which paths start with the folder's name.
    `files` are used instead of the folder's, for example from another host. `buffers` are an editor's
    unsaved texts, which take precedence over the files on disk.
    `runner` selects how commands run, such as `container:IMAGE`; default: the strongest sandbox that works.
    `readable` are paths outside the folder that commands may read, in addition to the programs on PATH.
    `separate_streams` puts a command's stdout and stderr into the details of `bash`, but loses their order.
    `settings` come from `load_configuration` or from the program; without them no user settings are read.
    """
    settings = settings or Settings()
    root = combined_workspace(root)
    record = open_local_journal(root, state)
    folder, outputs = record.state, FolderBlobStore(record.state / "outputs")
    is_local = files is None
    held = files or _files_with_buffers(record.files, buffers)
    runs_programs = held is record.files
    runner = runner or os.environ.get(RUNNER_VARIABLE, "") or settings.runner
    readable = _checked_readable_paths((*settings.readable, *readable), root, folder)

    # Each function imports and makes one port when a call first uses it.
    def make_search() -> "HostSearch":
        return _host_search(held, root)

    def make_output_search() -> "HostSearch":
        from handtools.host.search.ripgrep_search import RipgrepSearch

        return RipgrepSearch(folder / "outputs", workspace=root)

    def make_syntax() -> "Syntax":
        from handtools.host.syntax.ast_grep_syntax import TreeSyntax

        return TreeSyntax(root)

    def make_media() -> "Media":
        from handtools.host.media.local_media import LocalMedia

        return LocalMedia(root)

    def make_skills() -> "HostSkills":
        from handtools.host.skills import SkillFolders, package_skill_folders, user_skill_folders

        return SkillFolders(
            held,
            os.path.realpath(root),
            local=is_local,
            users=user_skill_folders(),
            packages=package_skill_folders,
        )

    def make_web() -> "HostWeb":
        from handtools.host.web.local_web import LocalWeb
        from handtools.host.web.page_cache import PageCache

        return LocalWeb(pages=PageCache(FolderBlobStore(folder / "pages")), proxy=settings.proxy, root=root)

    def make_commands() -> "HostCommands":
        from handtools.host.commands.local_commands import LocalCommands
        from handtools.host.sandbox.capture_selection import BestCapture

        return LocalCommands(
            root,
            state=folder,
            output_blobs=outputs,
            runner=runner,
            capture=BestCapture(root, record.backups) if is_local else None,
            passed=frozenset(settings.environment),
            path=settings.path,
            readable=readable,
            limits=settings.limits,
            outgoing_proxy=settings.proxy,
            separate_streams=separate_streams,
        )

    def make_language() -> "HostLanguage":
        from handtools.host.language.local_language import choose_language

        return choose_language(
            root if runs_programs else None, folder, program_runner, only=settings.servers
        )

    def make_formatters() -> "Formatters":
        if not runs_programs:
            from handtools.core.language import NoFormatters

            return NoFormatters()
        from handtools.host.language.formatters import LocalFormatters

        return LocalFormatters(root, syntax_port(), runner=program_runner, only=settings.formatters)

    def program_runner() -> "Runner":
        from handtools.host.language.local_language import confined_program_runner

        return confined_program_runner(workspace.commands, root)

    syntax_port = PortOnUse(make_syntax)
    workspace = Workspace(
        files=held,
        locks=FileLocks(folder / "locks"),
        journal=record.journal,
        output_store=outputs,
        host_search=PortOnUse(make_output_search),
        search=PortOnUse(make_search),
        syntax=syntax_port,
        media=PortOnUse(make_media),
        skills=skills or PortOnUse(make_skills),
        web=web or PortOnUse(make_web),
        commands=commands or PortOnUse(make_commands),
        language=language or PortOnUse(make_language),
        formatters=formatters or PortOnUse(make_formatters),
        rules=_installation_rules(root) if is_local else (),
        folders=tuple(filter(None, workspace_folders(root))),
        root="" if commands else os.path.realpath(root),
        boot=boot_if_lasting(folder, workspace_folders(root).values()) if runs_programs else "",
    )
    return workspace


def _files_with_buffers(files: LocalFiles, buffers: EditorBuffers | None) -> HostFiles:
    if not buffers:
        return files
    from handtools.host.files.editor_files import EditorFiles

    return EditorFiles(files, buffers)


def _host_search(files: HostFiles, root: str | Path) -> "HostSearch":
    if isinstance(files, LocalFiles):
        from handtools.host.search.several_folders_search import local_search

        return local_search(root)
    from handtools.host.files.editor_files import EditorFiles
    from handtools.host.search.copied_files_search import CopiedFilesSearch
    from handtools.host.search.editor_files_search import EditorFilesSearch

    return (
        EditorFilesSearch(files, root) if isinstance(files, EditorFiles) else CopiedFilesSearch(files, root)
    )


def _checked_readable_paths(paths: Sequence[str | Path], root: str | Path, state: Path) -> tuple[str, ...]:
    """Return the paths outside the workspace that commands may read; raises `UsageError` for one too broad."""
    if not paths:
        return ()
    from handtools.host.sandbox.path_program_folders import validate_readable_path

    real_root, real_state = os.path.realpath(root), os.path.realpath(state)
    return tuple(validate_readable_path(path, root=real_root, state=real_state) for path in paths)


def _installation_rules(root: str | Path) -> tuple[Rule, ...]:
    """Return rules that protect handtools' own installation if it is inside the workspace."""
    folders = installation_folders_in_workspace(root)
    if not folders:
        return ()
    logger.warning(INSTALLATION_WARNING, ", ".join(folders))
    paths = tuple(glob for folder in folders if folder != "." for glob in (folder, f"{folder}/**"))
    rule = Rule(
        "installation",
        "ask",
        INSTALLATION_REASON,
        effects=frozenset({"change"}),
        paths=paths,
        only_tightens=True,
    )
    return (rule,) if paths else ()


def _with_rules(policy: Policy, workspace: Workspace) -> Policy:
    policy = policy.in_each_folder() if workspace.folders else policy
    more = [rule for rule in workspace.rules if rule not in policy.rules]
    return policy.with_rules(more) if more else policy


def check_tool_names(policy: Policy, offered: Iterable[str] = ()) -> None:
    """Raise `UsageError` if a policy names an unknown tool, because its rule would have no effect.

    Known tools are the offered ones, the built-in ones and those of plugins.
    """
    named = {*(policy.allow or ()), *policy.block, *(name for rule in policy.rules for name in rule.tools)}
    unknown = named.difference(offered, EVERYTHING, EDITORS)
    if not unknown:
        return
    from handtools.core.dialects.all_dialects import DIALECTS

    ours = {row.name: row.tools for rows in DIALECTS.values() for row in rows}
    for name in sorted(unknown & ours.keys()):
        own = ", ".join(f"`{each}`" for each in ours[name])
        raise UsageError(f"The policy: `{name}` is a vendor's name for {own}. Use that name in policies.")
    known = {*offered, *EVERYTHING, *EDITORS, *(tool.name for tool in plugins())}
    check_words("The policy", "tool", sorted(unknown), known)


class ToolboxOptions(TypedDict, total=False):
    """Keyword arguments of a `Toolbox`, except its tools and workspace."""

    policy: Policy | None
    approver: Approver | None
    callbacks: Callbacks | None
    listeners: Iterable[EventListener]
    clock: Callable[[], datetime]
    timeout: float


def reading(
    root: OneOrMoreFolders = ".", *, settings: Settings | None = None, **options: Unpack[ToolboxOptions]
) -> Toolbox:
    """Make a toolbox with read-only tools for the workspace and the web."""
    options["policy"] = replace(options.get("policy") or Policy(), tools="read_only")
    _add_notifier(options, settings, root)
    return Toolbox(READING, workspace=local_workspace(root, settings=settings), **options)


def coding(
    root: OneOrMoreFolders = ".",
    *,
    runner: str = "",
    readable: Iterable[str | Path] = (),
    separate_streams: bool = False,
    settings: Settings | None = None,
    **options: Unpack[ToolboxOptions],
) -> Toolbox:
    """Make a toolbox with the tools for working on code, in one folder or several.

    Commands may also read the paths in `readable`. With `separate_streams`, the details of `bash` contain
    stdout and stderr separately.
    """
    workspace = local_workspace(
        root, runner=runner, readable=readable, separate_streams=separate_streams, settings=settings
    )
    _add_notifier(options, settings, root)
    return Toolbox(CODING, workspace=workspace, **options)


def everything(
    root: OneOrMoreFolders = ".",
    *,
    runner: str = "",
    readable: Iterable[str | Path] = (),
    separate_streams: bool = False,
    settings: Settings | None = None,
    **options: Unpack[ToolboxOptions],
) -> Toolbox:
    """Make a toolbox with all built-in tools and installed plugins; keywords as for `coding`."""
    workspace = local_workspace(
        root, runner=runner, readable=readable, separate_streams=separate_streams, settings=settings
    )
    _add_notifier(options, settings, root)
    return Toolbox([*EVERYTHING, *plugins()], workspace=workspace, **options)


def _add_notifier(options: ToolboxOptions, settings: Settings | None, root: OneOrMoreFolders) -> None:
    """If the settings configure a notification, add a listener that notifies the user of pending calls."""
    if settings is not None and settings.notify:
        from handtools.host.notifications import ApprovalNotifier

        notifier = ApprovalNotifier(settings.notify, combined_workspace(root))
        options["listeners"] = (*options.get("listeners", ()), notifier)


def plugins() -> list[AnyTool]:
    """Load the tools that installed packages register as entry points; raises if one can't be loaded."""
    from importlib.metadata import entry_points

    found = []
    for point in sorted(entry_points(group=PLUGIN_GROUP), key=lambda point: point.name):
        try:
            loaded = point.load()
        except (ImportError, AttributeError) as failure:
            raise UsageError(
                f"The tool {point.name!r} ({point.value}) can't be loaded: {failure}."
            ) from failure
        if not isinstance(loaded, Tool):
            raise UsageError(f"The entry point {point.name!r} ({point.value}) is not a tool.")
        found.append(loaded)
    return found


P = ParamSpec("P")
R = TypeVar("R")
_PORTAL = BlockingPortalProvider()
"""Event loop shared by all concurrent blocking calls of the process; it stops when no call is running.

Calls wait for each other with asyncio events, and setting an event from another loop's thread would not wake
the waiting call.
"""


def run_async_from_sync(work: Callable[[], Coroutine[Any, Any, R]]) -> R:
    """Run async work on a toolbox from synchronous code, in the event loop shared by all blocking calls."""
    with _PORTAL as portal:
        running: Future[R] = portal.start_task_soon(work)
        try:
            return running.result()
        except KeyboardInterrupt:
            running.cancel()
            raise


def _blocking_method(
    method: Callable[Concatenate[Toolbox, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate["BlockingToolbox", P], R]:
    @wraps(method)
    def wait(self: "BlockingToolbox", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return run_async_from_sync(partial(method, self.toolbox, *args, **kwargs))

    return wait


class BlockingToolbox:
    """Blocking version of a toolbox for synchronous code, usable from any thread, even in an event loop."""

    def __init__(self, toolbox: Toolbox) -> None:
        self.toolbox = toolbox

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    call = _blocking_method(Toolbox.call)
    resume = _blocking_method(Toolbox.resume)
    withdraw = _blocking_method(Toolbox.withdraw)
    waiting = _blocking_method(Toolbox.waiting)
    why = _blocking_method(Toolbox.why)
    close = _blocking_method(Toolbox.aclose)
