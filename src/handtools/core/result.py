"""The `Result` of a tool call: content blocks for the model, details for programs; and its JSON form."""

import base64
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, runtime_checkable

from handtools.core.approval import Approval
from handtools.core.changes import RecordedChanges, TouchedPath
from handtools.core.errors import UsageError
from handtools.text.encoding import without_surrogates

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Text:
    """Content block of plain text."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """Content block with an image in a format that models accept."""

    data: bytes
    media_type: str

    @property
    def base64(self) -> str:
        """The bytes in base64, as APIs expect them."""
        return base64.b64encode(self.data).decode()


@dataclass(frozen=True, slots=True)
class Document:
    """Content block with a whole file, such as a PDF."""

    data: bytes
    media_type: str
    name: str

    @property
    def base64(self) -> str:
        """The bytes in base64, as APIs expect them."""
        return base64.b64encode(self.data).decode()


ContentBlock = Text | Image | Document


def content_blocks(content: str | ContentBlock | Sequence[ContentBlock]) -> tuple[ContentBlock, ...]:
    """Convert a string, a block or a list of blocks from a tool to a tuple of content blocks."""
    if isinstance(content, str):
        return (Text(content),)
    return (content,) if isinstance(content, Text | Image | Document) else tuple(content)


def block_to_json(block: ContentBlock) -> dict[str, Any]:
    """Convert a content block to JSON values."""
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    data = block.base64
    shown: dict[str, Any] = {"type": "image", "media_type": block.media_type, "data": data}
    return shown if isinstance(block, Image) else shown | {"type": "document", "name": block.name}


def block_from_json(value: dict[str, Any]) -> ContentBlock:
    """Build a content block from JSON values made by `block_to_json`."""
    match value:
        case {"type": "text", "text": text}:
            return Text(text)
        case {"type": "image", "media_type": kind, "data": data}:
            return Image(base64.b64decode(data), kind)
        case {"type": "document", "media_type": kind, "data": data, "name": name}:
            return Document(base64.b64decode(data), kind, name)
    raise UsageError(f"Not a content block: {value!r}")


D = TypeVar("D", covariant=True)

CallStatus = Literal["ok", "error", "denied", "cancelled", "timeout", "pending"]


@dataclass(frozen=True, slots=True)
class CallFailure:
    """Error of a failed call: code, message and hint."""

    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class SpilledOutput:
    """Reference to the stored full output of a call whose text was too long for the model."""

    path: str
    bytes: int
    lines: int


@dataclass(frozen=True, slots=True)
class CallUsage:
    """Cost of a call: seconds, tokens and bytes of its text."""

    seconds: float = 0.0
    tokens: int = 0
    bytes: int = 0


_UNUSED = CallUsage()


@dataclass(frozen=True, slots=True, init=False)
class Result(Generic[D]):
    """Result of a tool call. The tool sets `content` and `details`; the executor sets the other fields."""

    content: tuple[ContentBlock, ...]
    details: D
    status: CallStatus = "ok"
    fault: CallFailure | None = None
    changes: RecordedChanges | None = None
    spill: SpilledOutput | None = None
    usage: CallUsage = field(default_factory=CallUsage)
    request: Approval | None = None

    def __init__(
        self,
        content: str | ContentBlock | Sequence[ContentBlock],
        details: D,
        *,
        status: CallStatus = "ok",
        fault: CallFailure | None = None,
        changes: RecordedChanges | None = None,
        spill: SpilledOutput | None = None,
        usage: CallUsage | None = None,
        request: Approval | None = None,
    ) -> None:
        give = object.__setattr__
        give(self, "content", content_blocks(content))
        give(self, "details", details)
        give(self, "status", status)
        give(self, "fault", fault)
        give(self, "changes", changes)
        give(self, "spill", spill)
        give(self, "usage", usage or _UNUSED)
        give(self, "request", request)

    @property
    def ok(self) -> bool:
        """Whether the status is "ok"."""
        return self.status == "ok"

    @property
    def text(self) -> str:
        """All text blocks joined to one string."""
        return "\n".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def safe_content(self) -> tuple[ContentBlock, ...]:
        """The content blocks for a model's API, without lone surrogates, which JSON encoders may reject."""
        return tuple(
            Text(without_surrogates(block.text)) if isinstance(block, Text) else block
            for block in self.content
        )

    def with_fields(self, **facts: Any) -> "Result[D]":
        """Return a copy of the result with some fields replaced."""
        known = {name: getattr(self, name) for name in _FIELDS}
        return Result(**(known | facts))


@runtime_checkable
class LoggedOutcome(Protocol):
    """Details that give the log more than `ok`, such as a failed command or an undo with only conflicts."""

    @property
    def failed(self) -> bool:
        """Whether the tool ran but the request failed, for example with a non-zero exit code."""
        ...

    @property
    def outcome(self) -> str:
        """One or two words on the outcome, such as `exit 1` or `redo`; empty if there is nothing to add."""
        ...


def logged_status(result: Result[Any]) -> tuple[str, str]:
    """Return status and code of a call as the log shows them."""
    if result.fault is not None or not result.ok or not isinstance(result.details, LoggedOutcome):
        return result.status, result.fault.code if result.fault else ""
    return "failed" if result.details.failed else result.status, result.details.outcome


_FIELDS = tuple(one.name for one in fields(Result))


def result_to_json(result: Result[Any]) -> dict[str, Any]:
    """Convert a result to JSON values, without empty fields."""
    return _result_head(result) | {name: asdict(fact) for name, fact in _result_facts(result).items()}


def result_to_bytes(result: Result[Any]) -> bytes:
    """Encode a result as one line of JSON bytes."""
    from pydantic_core import PydanticSerializationError, to_json

    try:
        return to_json(_result_head(result) | _result_facts(result))
    except PydanticSerializationError:
        # Details may contain lone surrogates, which only the slower json encoder accepts.
        return json.dumps(result_to_json(result)).encode()


def _result_head(result: Result[Any]) -> dict[str, Any]:
    from pydantic import BaseModel

    details = result.details
    return {
        "status": result.status,
        "content": [block_to_json(block) for block in result.content],
        "details": details.model_dump(mode="json") if isinstance(details, BaseModel) else details,
    }


def _result_facts(result: Result[Any]) -> dict[str, Any]:
    every = ("usage", "fault", "changes", "spill", "request")
    return {name: fact for name in every if (fact := getattr(result, name)) is not None}


def result_from_json(value: dict[str, Any], details: "type[BaseModel] | None" = None) -> Result[Any]:
    """Build a result from JSON values; details stay JSON values unless their model is given."""
    given = value["details"]
    if details is not None and given is not None:
        given = details.model_validate(given)
    changes = value.get("changes")
    return Result(
        [block_from_json(block) for block in value["content"]],
        given,
        status=value["status"],
        fault=CallFailure(**value["fault"]) if "fault" in value else None,
        changes=_changes_from_json(changes) if changes else None,
        spill=SpilledOutput(**value["spill"]) if "spill" in value else None,
        usage=CallUsage(**value["usage"]),
        request=Approval(**value["request"]) if "request" in value else None,
    )


def _changes_from_json(value: dict[str, Any]) -> RecordedChanges:
    touched = tuple(TouchedPath(**item) for item in value["touched"])
    return RecordedChanges(value["entry"], touched, value["coverage"], tuple(value["omitted"]))
