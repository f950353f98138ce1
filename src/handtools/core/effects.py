"""Effects: everything a tool does to the world, as values that policy can judge before they happen."""

import hashlib
from dataclasses import dataclass
from typing import Literal, get_args

from handtools.core.changes import ChangeSet
from handtools.core.command import Command
from handtools.core.trees import inside
from handtools.core.visits import Visit
from handtools.text.shelling import Script, quoted, read_script

EffectKind = Literal["read", "change", "run", "visit", "deliver", "delegate"]
EFFECTS: frozenset[EffectKind] = frozenset(get_args(EffectKind))


@dataclass(frozen=True, slots=True)
class Read:
    """Looking at paths: their bytes, their names or their facts."""

    paths: tuple[str, ...]

    @property
    def kind(self) -> Literal["read"]:
        """As rules name it."""
        return "read"


@dataclass(frozen=True, slots=True)
class Run:
    """Running a command."""

    command: Command
    confined: bool
    """Whether the kernel keeps it inside the workspace, and off all hosts that are not listed."""

    @property
    def kind(self) -> Literal["run"]:
        """As rules name it."""
        return "run"

    @property
    def script(self) -> Script:
        """What the command is made of."""
        return read_script(self.command.script)

    @property
    def parts(self) -> tuple[str, ...]:
        """The plain commands it consists of; the script itself where it is not plain."""
        return tuple(quoted(words) for words in self.script.parts) or (self.command.script,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Giving a file to a person: what leaves the workspace can't be taken back."""

    path: str
    digest: str
    bytes: int
    media_type: str
    title: str = ""

    @property
    def kind(self) -> Literal["deliver"]:
        """As rules name it."""
        return "deliver"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """Having another agent work."""

    title: str
    prompt: str

    @property
    def kind(self) -> Literal["delegate"]:
        """As rules name it."""
        return "delegate"


Effect = Read | ChangeSet | Run | Visit | Delivery | Handover


def targets(effect: Effect) -> tuple[str, ...]:
    """What rules match against: paths, those inside a moved folder too; parts of a command; a host; a title."""
    if isinstance(effect, ChangeSet):
        return (*effect.paths, *(path for change in effect for path in inside(change)))
    if isinstance(effect, Visit):
        return (effect.place,)
    if isinstance(effect, Delivery | Handover):
        return (effect.path if isinstance(effect, Delivery) else effect.title,)
    return effect.parts if isinstance(effect, Run) else effect.paths


def fingerprint(effect: Effect) -> str:
    """Names exactly this effect, so that a grant covers it and nothing else."""
    seen = hashlib.sha256(effect.kind.encode())
    if isinstance(effect, ChangeSet):
        for change in effect:
            for node in (change.before, change.after):
                state = "absent" if node is None else f"{node.kind} {node.digest} {node.mode}"
                seen.update(f"\0{change.path}\0{state}".encode("utf-8", "surrogatepass"))
    elif isinstance(effect, Delivery | Handover):
        exactly = effect.digest if isinstance(effect, Delivery) else effect.prompt
        seen.update("\0".join((*targets(effect), exactly)).encode("utf-8", "surrogatepass"))
    elif isinstance(effect, Run):
        command = effect.command
        facts = (
            command.script,
            command.cwd,
            command.network,
            *command.hosts,
            *(("live",) if command.live else ()),
            str(sorted(command.env.items())),
        )
        seen.update("\0".join(facts).encode("utf-8", "surrogatepass"))
    else:
        # Of a visit the host alone: where it sends us on within itself, a person has said yes to already.
        seen.update("\0".join(targets(effect)).encode("utf-8", "surrogatepass"))
    return seen.hexdigest()
