"""Methods of our own beside those of MCP: a toolbox as it is, for `RemoteToolbox`."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field

from handtools.core.approval import Reply
from handtools.core.call import Call
from handtools.core.errors import HandtoolsError
from handtools.core.result import Result
from handtools.core.schema import Dialect
from handtools.core.wire import approval_to_json, result_to_json
from handtools.mcp.desk import Desk
from handtools.mcp.identity import SAFE, digest
from handtools.mcp.tightening import policy_from_json, tightened
from handtools.mcp.translate import Json, carried
from handtools.toolbox import Toolbox

PREFIX = "handtools/"
REFUSED = -32600
NARROWED = 64
"""Policies whose toolboxes are kept."""


class Asked(BaseModel):
    """Parameters of our methods: each reads what it needs."""

    model_config = ConfigDict(extra="ignore")

    tool: str = ""
    args: dict[str, Any] = Field(default_factory=dict)
    id: str = ""
    session: str = ""
    turn: str = ""
    parent: str = ""
    deadline: float | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)
    allow: bool = False
    remember: str = "once"
    message: str = ""
    fingerprint: str = ""
    """Of the question that is answered; empty answers any."""
    policy: dict[str, Any] | None = None
    """A policy that narrows the token's own, for this call."""


Method = Callable[[Any, Asked], Awaitable[Json]]


class Extension:
    """The methods, over one desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._narrowed: dict[str, Toolbox] = {}

    def methods(self) -> dict[str, Method]:
        """By the names they travel under."""
        named: tuple[Method, ...] = (
            self.call, self.resume, self.cancel, self.waiting, self.why, self.definitions,
        )  # fmt: skip
        return {f"{PREFIX}{method.__name__}": method for method in named}

    async def call(self, _ctx: object, asked: Asked) -> Json:
        """Run a call; a connection that is lost does not end it, and the same id asks for it again."""
        return _result(await _told(self._run(asked)))

    async def _run(self, asked: Asked) -> Result[Any]:
        call = Call(
            tool=asked.tool,
            args=asked.args,
            id=self._id(asked),
            session=asked.session or self._desk.session,
            turn=asked.turn,
            agent=self._desk.agent,
            parent=asked.parent,
            deadline=asked.deadline,
            metadata=asked.metadata,
            env=asked.env,
        )
        return await self._desk.run(call, self._box(asked))

    async def resume(self, _ctx: object, asked: Asked) -> Json:
        """Answer a pending call, where the token may do that."""
        if self._desk.asks != "client":
            raise _refused("This token may not answer: a person does, with `handtools approve`.")
        remember: Any = asked.remember if asked.remember in {"once", "session", "project"} else "once"
        reply = Reply(asked.allow, remember, asked.message, asked.fingerprint)
        return _result(await _told(self._desk.resume(self._id(asked), reply, self._box(asked))))

    async def cancel(self, _ctx: object, asked: Asked) -> Json:
        """Take a running call back."""
        boxes = (self._desk.attended, *self._narrowed.values())
        return {"cancelled": any(box.cancel(self._id(asked)) for box in boxes)}

    async def waiting(self, _ctx: object, _asked: Asked) -> Json:
        """The questions of this token's calls whose answers are out."""
        found = await self._desk.attended.waiting()
        return {"waiting": [carried(approval_to_json(approval)) for approval in found]}

    async def why(self, _ctx: object, asked: Asked) -> Json:
        """The deciding rule for a hypothetical call."""
        box = self._box(asked) or self._desk.toolbox
        return carried(asdict(await box.why(asked.tool, asked.args)))  # type: ignore[no-any-return]

    async def definitions(self, _ctx: object, _asked: Asked) -> Json:
        """What is offered, in every provider's dialect."""
        offered = self._desk.toolbox.definitions
        return {"definitions": {name: [asdict(one) for one in offered(name)] for name in get_args(Dialect)}}

    def _box(self, asked: Asked) -> Toolbox | None:
        """The tools under the policy that came along; None without one."""
        if asked.policy is None:
            return None
        name = digest("policy", asked.policy)
        if name not in self._narrowed:
            while len(self._narrowed) >= NARROWED:
                del self._narrowed[next(iter(self._narrowed))]
            box = self._desk.attended
            try:
                more = policy_from_json(asked.policy)
                self._narrowed[name] = box.under(tightened(box.policy, more, box.tools.values()))
            except HandtoolsError as problem:
                raise _refused(str(problem)) from problem
        return self._narrowed[name]

    def _id(self, asked: Asked) -> str:
        return self._desk.own(asked.id if SAFE.fullmatch(asked.id) else digest("named", asked.id))


def _result(result: Result[Any]) -> Json:
    value: Json = carried(result_to_json(result))
    return {"result": value}


async def _told(working: Awaitable[Result[Any]]) -> Result[Any]:
    try:
        return await working
    except HandtoolsError as problem:
        raise _refused(str(problem)) from problem


def _refused(message: str) -> Exception:
    from mcp.shared.exceptions import MCPError

    return MCPError(code=REFUSED, message=message)
