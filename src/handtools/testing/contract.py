"""Contract tests for any tool: subclass `ToolContract` in a test module, and set `tool` and `args`."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import anyio

from handtools.core.call import Call, CancelToken
from handtools.core.callbacks import Callbacks
from handtools.core.commands import HostCommands
from handtools.core.language import HostLanguage
from handtools.core.result import Result, result_from_json, result_to_json
from handtools.core.tool import AnyTool, json_schema
from handtools.core.web import HostWeb
from handtools.host.commands.local_commands import NoCommands
from handtools.host.language.local_language import NoLanguage
from handtools.host.web.local_web import NoWeb
from handtools.runtime.after_call import MAX_RESULT_TEXT_BYTES
from handtools.runtime.policy import Policy
from handtools.runtime.policy.rules import Rule
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.text.token_estimate import estimate_tokens
from handtools.toolbox import Toolbox
from handtools.tools.undo import undo

PROMPT_TOKENS = 300
DENY_CHANGES = Policy(
    rules=(Rule("deny-changes", "deny", "Denied by a test.", effects=frozenset({"change"})),)
)


class ToolContract:
    """Pytest base class with the tests that every tool must pass."""

    tool: ClassVar[AnyTool]
    args: ClassVar[Mapping[str, Any]]
    """Arguments with which a call of the tool must succeed."""
    files: ClassVar[Mapping[str, bytes]] = {}
    """Workspace files that the call needs."""

    policy: ClassVar[Policy] = Policy()
    """Policy under which the call is allowed."""

    def callbacks(self) -> Callbacks:
        """Return the callbacks for the contract's calls; override for a tool that needs some."""
        return Callbacks()

    def commands(self) -> HostCommands:
        """Return the commands port for the contract's calls; override for a tool that runs commands."""
        return NoCommands()

    def language(self) -> HostLanguage:
        """Return the language port for the contract's calls; override if the tool uses language servers."""
        return NoLanguage()

    def web(self) -> HostWeb:
        """Return the web port for the contract's calls; override for a tool that fetches pages."""
        return NoWeb()

    def test_a_good_call_succeeds_with_details_that_survive_json(self) -> None:
        result = self._call_tool(self._new_toolbox())
        assert result.ok, result.text
        assert isinstance(result.details, self.tool.details)
        wired = json.loads(json.dumps(result_to_json(result)))
        assert result_from_json(wired, self.tool.details) == result

    def test_the_result_fits_the_budget(self) -> None:
        assert len(self._call_tool(self._new_toolbox()).text.encode()) <= MAX_RESULT_TEXT_BYTES + 200

    def test_a_denied_call_changes_nothing(self) -> None:
        box = self._new_toolbox(policy=DENY_CHANGES)
        self._call_tool(box)
        assert self._file_contents(box) == dict(self.files)

    def test_a_cancelled_call_changes_nothing(self) -> None:
        box, token = self._new_toolbox(), CancelToken()
        token.cancel()
        assert self._call_tool(box, cancel=token).status == "cancelled"
        assert self._file_contents(box) == dict(self.files)

    def test_a_call_that_says_it_only_reads_changes_nothing(self) -> None:
        box = self._new_toolbox()
        result = self._call_tool(box)
        if self.tool.reads_only:
            assert result.changes is None
            assert self._file_contents(box) == dict(self.files)

    def test_the_same_call_id_runs_once(self) -> None:
        box = self._new_toolbox()
        call = Call(tool=self.tool.name, args=self.args)
        first = anyio.run(box.call, call)
        contents = self._file_contents(box)
        assert anyio.run(box.call, call) == first
        assert self._file_contents(box) == contents

    def test_undo_brings_back_every_byte(self) -> None:
        box = self._new_toolbox()
        call = Call(tool=self.tool.name, args=self.args)
        result = anyio.run(box.call, call)
        if result.changes is not None:
            anyio.run(box.call, "undo", {"scope": "call", "name": call.id})
        assert self._file_contents(box) == dict(self.files)

    def test_wrong_arguments_are_named_and_nothing_runs(self) -> None:
        box = self._new_toolbox()
        result = anyio.run(box.call, self.tool.name, {**self.args, "no_such_parameter": 1})
        assert result.fault is not None
        assert result.fault.code == "invalid_input"
        assert "no_such_parameter" in result.text
        assert self._file_contents(box) == dict(self.files)

    def test_the_prompt_is_there_and_short(self) -> None:
        assert 0 < estimate_tokens(self.tool.prompt) <= PROMPT_TOKENS

    def test_the_schema_is_an_object_in_every_dialect(self) -> None:
        plain = json_schema(self.tool.params)
        assert plain["type"] == "object"
        assert set(json_schema(self.tool.params, "strict")["required"]) == set(plain["properties"])
        assert set(json_schema(self.tool.params, "gemini")["properties"]) == set(plain["properties"])
        assert all(field.title or field.description for field in self.tool.params.model_fields.values())

    def _new_toolbox(self, **options: Any) -> Toolbox:
        tools = [self.tool] if self.tool.name == undo.name else [self.tool, undo]
        machine = {"commands": self.commands(), "web": self.web(), "language": self.language()}
        given = {"policy": self.policy, "callbacks": self.callbacks(), **machine, **options}
        return memory_toolbox(self.files, tools=tools, **given)

    def _call_tool(self, toolbox: Toolbox, cancel: CancelToken | None = None) -> Result[Any]:
        return anyio.run(lambda: toolbox.call(self.tool.name, self.args, cancel=cancel))

    def _file_contents(self, toolbox: Toolbox) -> dict[str, bytes]:
        files = toolbox.workspace.files
        contents: dict[str, bytes] = getattr(files, "files", {})
        return contents
