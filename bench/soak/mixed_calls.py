"""The calls of a soak, drawn by chance, and the workspaces they are made in."""

import random
import time
from pathlib import Path

from handtools import Call, Policy, Toolbox, local_workspace
from handtools.runtime.journal import RetentionLimits
from handtools.runtime.policy import DEFAULTS
from handtools.toolbox import CODING

FILES, LINES = 24, 60
SHARES = {
    "read": 0.55,
    "list": 0.15,
    "edit": 0.13,
    "write": 0.06,
    "undo": 0.05,
    "grep": 0.03,
    "find": 0.029,
    "bash": 0.001,
}


class SoakWorkspace:
    """A folder, its record and a toolbox that is opened when it is needed; knows what every file must hold."""

    def __init__(self, folder: Path) -> None:
        self.root, self.state = folder / "work", folder / "state"
        self.names = [f"part_{n % 4}/module_{n}.py" for n in range(FILES)]
        self.commands, self.failed = 0, 0
        self.seconds: list[float] = []
        self.undoable: dict[str, int] = {}
        """The version before the last change of a file, where that can still be taken back."""
        self._box: Toolbox | None = None
        if not self.root.exists():
            for name in self.names:
                path = self.root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content(name, 0))
            (self.root / "count.txt").write_text("0\n")
        # What an interrupted run left: each file says its own version.
        self.versions = {name: version_of((self.root / name).read_text()) for name in self.names}
        self.commands = int((self.root / "count.txt").read_text())

    async def make(self, call: Call) -> None:
        """Make a call; one that fails is counted."""
        if self._box is None:
            workspace = local_workspace(self.root, state=self.state)
            policy = Policy(defaults=DEFAULTS | {"run": "allow"})
            self._box = Toolbox(CODING, workspace=workspace, policy=policy)
        began = time.perf_counter()
        result = await self._box.call(call)
        self.seconds.append(time.perf_counter() - began)
        if not result.ok:
            self.failed += 1
            print(f"{call.tool} {dict(call.args)}: {result.text[:300]}", flush=True)
            self.versions |= {name: version_of((self.root / name).read_text()) for name in self.names}

    def let_go_of_records_before(self, moment: float) -> None:
        """What `handtools gc` does; blocking."""
        if self._box is not None:
            limits = RetentionLimits(max_age=time.time() - moment)
            self._box.workspace.journal.retention.prune(limits)

    async def close(self) -> None:
        """End the toolbox; the next call opens another one."""
        if self._box is not None:
            await self._box.aclose()
            self._box = None

    def wrong_files(self) -> int:
        """How many files are not as the calls that succeeded left them."""
        texts = {name: content(name, version) for name, version in self.versions.items()}
        texts["count.txt"] = f"{self.commands}\n"
        return sum((self.root / name).read_text() != text for name, text in texts.items())


def content(name: str, version: int) -> str:
    """A module that says its version in its first line and in a few others."""
    lines = [f"value_{n} = compute({n}, {version if n % 20 == 7 else n})" for n in range(LINES)]
    return "\n".join([f"# {name}, version {version}", *lines, ""])


def version_of(text: str) -> int:
    """The version that a module's first line says."""
    return int(text.split("\n", 1)[0].rpartition(" ")[2])


def next_call(place: SoakWorkspace, number: int, seed: int, session: str) -> Call:
    """The call of a number; a place's expectations move on with it."""
    chance = random.Random(f"{seed} {number}")
    kind = chance.choices(list(SHARES), list(SHARES.values()))[0]
    name = chance.choice(place.names)
    if kind == "undo" and not place.undoable:
        kind = "edit"
    return Call(tool=kind, args=_arguments(place, kind, name, chance), session=session)


def _arguments(place: SoakWorkspace, kind: str, name: str, chance: random.Random) -> dict[str, object]:
    version = place.versions[name]
    match kind:
        case "read":
            return {"path": name}
        case "list":
            return {"path": name.split("/", maxsplit=1)[0]}
        case "grep":
            return {
                "pattern": rf"compute\({chance.randrange(LINES)},",
                "path": name.split("/", maxsplit=1)[0],
            }
        case "find":
            return {"pattern": f"*_{chance.randrange(FILES)}.py"}
        case "bash":
            place.commands += 1
            return {"command": f"echo {place.commands} > count.txt; wc -l {name}"}
        case "undo":
            name, before = place.undoable.popitem()
            place.versions[name] = before
            return {"scope": "path", "name": name}
        case "write":
            _moved_on(place, name)
            return {"path": name, "content": content(name, version + 1), "mode": "overwrite"}
        case _:
            _moved_on(place, name)
            return {
                "path": name,
                "old_string": content(name, version).partition("value_50")[0],
                "new_string": content(name, version + 1).partition("value_50")[0],
            }


def _moved_on(place: SoakWorkspace, name: str) -> None:
    place.undoable[name] = place.versions[name]
    place.versions[name] += 1
