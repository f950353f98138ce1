"""Matchers of other projects, as they install from PyPI and npm, on the same cases.

They are in no requirements of ours: a scratch folder has a `venv` with `aider-chat` and `node_modules`, its own or
of folders inside it, with the others. Each runs in a process of its own: cases in, one JSON line per case out.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.editbench.cases import Case
from bench.editbench.matchers import Answer, Matcher

_WAIT = 900.0

_AIDER = '''
import importlib.abc, importlib.machinery, importlib.util, json, sys, types

class Absent(types.ModuleType):
    """What a matcher imports and does not need: any name in it is a class."""
    __path__ = []
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})

class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self)
    def create_module(self, spec):
        return Absent(spec.name)
    def exec_module(self, module):
        pass

for name in ("coders", "coders.base_coder", "coders.editblock_prompts", "utils", "dump"):
    module = sys.modules["aider." + name] = Absent("aider." + name)
    module.DEFAULT_FENCE = ("```", "```")
sys.meta_path.append(Finder())
import aider
spec = importlib.util.spec_from_file_location(
    "aider.coders.editblock_coder", aider.__path__[0] + "/coders/editblock_coder.py")
coder = importlib.util.module_from_spec(spec)
spec.loader.exec_module(coder)
for line in sys.stdin:
    case = json.loads(line)
    try:
        text = coder.do_replace("a.txt", case["content"], case["old"], case["new"], ("```", "```"))
    except Exception as error:
        text = None
    print(json.dumps({"text": text}), flush=True)
'''

_MODULES = {
    "pi": "@mariozechner/pi-coding-agent/dist/core/tools/edit-diff.js",
    "gemini": "@google/gemini-cli-core/dist/src/tools/edit.js",
    "mcp-filesystem": "@modelcontextprotocol/server-filesystem/dist/lib.js",
}
_CODEX = "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
NAMES = ("aider", "codex", *_MODULES)


def peer(name: str, folder: Path) -> Matcher:
    """The peer's matcher, kept running while cases come."""
    if name == "codex":
        return _codex(_installed(folder, _CODEX))
    if name == "aider":
        command = [str(folder / "venv/bin/python"), "-c", _AIDER]
    else:
        module = _installed(folder, _MODULES[name])
        command = ["node", str(Path(__file__).with_name("peer.mjs")), str(module), name]
    return _piped(command)


def _installed(folder: Path, path: str) -> Path:
    found = next(iter(_candidates(folder, path)), None)
    if found is None:
        raise SystemExit(f"{path} is not installed in {folder}")
    return found


def _candidates(folder: Path, path: str) -> Iterator[Path]:
    for modules in (folder / "node_modules", *sorted(folder.glob("*/node_modules"))):
        if (modules / path).exists():
            yield (modules / path).resolve()


def _piped(command: list[str]) -> Matcher:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def answer(case: Case) -> Answer:
        if case.patch:
            return Answer(None, "takes no patches", "refused")
        sent = {"content": case.content.decode("utf-8", "replace"), "old": case.old, "new": case.new}
        stdin.write(json.dumps(sent) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise SystemExit(f"{command[0]} ended: {process.wait(_WAIT)}")
        text = json.loads(line)["text"]
        return Answer(None if text is None else text.encode("utf-8", "surrogatepass"))

    return answer


def _codex(program: Path) -> Callable[[Case], Answer]:
    """Its own `apply_patch`, which the program is when it is called by that name."""

    def answer(case: Case) -> Answer:
        if not case.patch:
            return Answer(None, "takes patches alone", "refused")
        with tempfile.TemporaryDirectory() as folder:
            named = next(row for row in case.patch.split("\n") if row.startswith("*** Update File: "))
            file = Path(folder, named.removeprefix("*** Update File: ").strip())
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(case.content)
            done = subprocess.run(
                ["apply_patch", case.patch],
                executable=str(program),
                cwd=folder,
                capture_output=True,
                timeout=_WAIT,
                check=False,
            )
            return Answer(file.read_bytes() if done.returncode == 0 and file.exists() else None)

    return answer
