"""OpenAI Agents' built-in tools: `Agent(name="…", tools=apply_patch_and_shell_tools(coding(".")))`.

The SDK's `ApplyPatchTool` with an editor and its `ShellTool` with an executor, both over a toolbox. They
pause for approval as in `openai_agents.tools`. `local_shell_tool` is for models that use the older shell
tool.
"""

import json
from dataclasses import dataclass, field, replace
from typing import Any

from agents import (
    ApplyPatchTool,
    FunctionTool,
    LocalShellCommandRequest,
    LocalShellTool,
    RunContextWrapper,
    ShellActionRequest,
    ShellCallOutcome,
    ShellCommandOutput,
    ShellCommandRequest,
    ShellResult,
    ShellTool,
)
from agents.editor import ApplyPatchOperation, ApplyPatchResult

from handtools.adapters.openai_agents import Conversation, RunQuestions
from handtools.adapters.provider_calls import PROVIDER_ID_KEY, build_provider_call
from handtools.core.call import Call
from handtools.core.dialects.openai import PATCH_ACTIONS
from handtools.core.errors import UsageError
from handtools.core.result import Result, Text
from handtools.text.patch_model import begin_patch_text
from handtools.toolbox import Toolbox

APPLY_PATCH, SHELL = "apply_patch", "shell"
Tools = list[ApplyPatchTool | ShellTool | FunctionTool]


def apply_patch_and_shell_tools(toolbox: Toolbox, *, conversation: Conversation = "") -> Tools:
    """Return `apply_patch` and `shell`, as far as the toolbox offers the tools that they call.

    The list ends with a tool that is never offered to a model. It exists because the SDK calls its
    `is_enabled`, which withdraws rejected requests.
    """
    own = toolbox.in_dialect("openai")
    runs = RunQuestions(own, conversation, (APPLY_PATCH, SHELL))
    editor, shell = ToolboxEditor(runs), _Shell(runs)
    made = {
        APPLY_PATCH: ApplyPatchTool(editor=editor, needs_approval=editor.call_needs_approval),
        SHELL: ShellTool(executor=shell.run_commands, needs_approval=shell.call_needs_approval),
    }
    offered = [made[one.name] for one in own.definitions()]
    return [*offered, _tool_that_withdraws_rejected(runs)] if offered else []


def local_shell_tool(toolbox: Toolbox, *, conversation: Conversation = "") -> LocalShellTool:
    """Return the older shell tool, which can't pause for approval.

    The model reads that the call is waiting, and may send it again later.
    """
    own = toolbox.in_dialect("openai_functions")
    runs = RunQuestions(own, conversation, ())

    async def run(request: LocalShellCommandRequest) -> str:
        action = request.data.action
        args = {
            "command": action.command,
            "workdir": action.working_directory,
            "timeout_ms": action.timeout_ms,
        }
        given = {name: value for name, value in args.items() if value is not None}
        call = build_provider_call(
            SHELL, given, request.data.call_id, runs.conversation_of_run(request.ctx_wrapper)
        )
        try:
            call = replace(call, env=action.env)
        except UsageError as problem:
            return str(problem)
        return _result_text(await own.call(call))

    return LocalShellTool(executor=run)


@dataclass
class ToolboxEditor:
    """Editor for `ApplyPatchTool` that turns each operation into a `patch` call."""

    runs: RunQuestions
    asked: dict[str, dict[str, None]] = field(default_factory=dict)
    """Provider ids by patch: the SDK passes the id to the approval check, but not to the operation."""

    async def call_needs_approval(
        self, run: RunContextWrapper[Any], operation: ApplyPatchOperation, provider_id: str
    ) -> bool:
        """Make the call; return True if it needs approval."""
        self.asked.setdefault(_patch_text(operation), {})[provider_id] = None
        return await self.runs.call_needs_approval(run, self._build_patch_call(run, operation, provider_id))

    async def create_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await self._apply_operation(operation)

    async def update_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await self._apply_operation(operation)

    async def delete_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await self._apply_operation(operation)

    async def _apply_operation(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        run = operation.ctx_wrapper
        provider_id = await self._provider_id_of_operation(run, operation)
        # No id means that the SDK skipped the check, because the user approved all calls of the tool.
        approved = not provider_id or run.is_tool_approved(APPLY_PATCH, provider_id) is True
        result = await self.runs.result_or_run(
            self._build_patch_call(run, operation, provider_id), approved=approved
        )
        return ApplyPatchResult(status="completed" if result.ok else "failed", output=_result_text(result))

    async def _provider_id_of_operation(
        self, run: RunContextWrapper[Any], operation: ApplyPatchOperation
    ) -> str:
        known = self.asked.get(_patch_text(operation), {})
        if known:
            first = next(iter(known))
            del known[first]
            if not known:
                del self.asked[_patch_text(operation)]
            return first
        # The run was resumed in another process: find this operation's request among the pending ones.
        for approval in await self.runs.toolbox.waiting():
            provider_id = str(approval.metadata.get(PROVIDER_ID_KEY) or "")
            if provider_id and self._build_patch_call(run, operation, provider_id).id == approval.call_id:
                return provider_id
        return ""

    def _build_patch_call(
        self, run: RunContextWrapper[Any], operation: ApplyPatchOperation, provider_id: str
    ) -> Call:
        return build_provider_call(
            "patch", {"patch": _patch_text(operation)}, provider_id, self.runs.conversation_of_run(run)
        )


@dataclass
class _Shell:
    runs: RunQuestions

    async def call_needs_approval(
        self, run: RunContextWrapper[Any], action: ShellActionRequest, provider_id: str
    ) -> bool:
        return await self.runs.call_needs_approval(run, self._build_bash_call(run, action, provider_id))

    async def run_commands(self, request: ShellCommandRequest) -> ShellResult | str:
        run, provider_id = request.ctx_wrapper, request.data.call_id
        approved = run.is_tool_approved(SHELL, provider_id) is True
        call = self._build_bash_call(run, request.data.action, provider_id)
        text = _result_text(await self.runs.result_or_run(call, approved=approved))
        try:
            item = json.loads(text)
        except ValueError:
            return text  # Nothing was run: the call is pending, or its arguments were refused.
        return ShellResult([_shell_command_output(one) for one in item["output"]])

    def _build_bash_call(
        self, run: RunContextWrapper[Any], action: ShellActionRequest, provider_id: str
    ) -> Call:
        asked = {"timeout_ms": action.timeout_ms, "max_output_length": action.max_output_length}
        given = {name: value for name, value in asked.items() if value is not None}
        args = {"action": {"commands": list(action.commands), **given}}
        return build_provider_call(SHELL, args, provider_id, self.runs.conversation_of_run(run))


def _tool_that_withdraws_rejected(runs: RunQuestions) -> FunctionTool:
    async def offered(run: RunContextWrapper[Any], _agent: Any) -> bool:
        await runs.withdraw_rejected_requests(run)
        return False

    async def refuse(_context: Any, _arguments: str) -> str:
        return "This tool does nothing."

    return FunctionTool(
        name="handtools_rejections",
        description="",
        params_json_schema={
            "type": "object",
            "properties": {},
            "required": [],
            "additionalProperties": False,
        },
        on_invoke_tool=refuse,
        is_enabled=offered,
    )


def _patch_text(operation: ApplyPatchOperation) -> str:
    return begin_patch_text(
        PATCH_ACTIONS[operation.type], operation.path, operation.diff or "", move_to=operation.move_to or ""
    )


def _shell_command_output(one: dict[str, Any]) -> ShellCommandOutput:
    outcome = ShellCallOutcome(one["outcome"]["type"], one["outcome"].get("exit_code"))
    return ShellCommandOutput(one["stdout"], one["stderr"], outcome)


def _result_text(result: Result[Any]) -> str:
    return "\n".join(block.text for block in result.safe_content if isinstance(block, Text))
