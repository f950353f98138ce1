"""A machine over the whole toolbox: two agents, a person, commands, approvals and cancellations on one workspace.

Held against a dictionary of what each path is, and of what each call did to it. The gate draws a few histories;
`just nightly`, or `HYPOTHESIS_PROFILE=nightly pytest tests/property/test_workspace_machine.py`, hundreds.
"""

import json
import os
import shlex
import stat
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from handtools import Call, Policy, Reply, Rule, Toolbox, local_workspace
from handtools.core.call import CancelToken
from handtools.core.events import Progressed
from handtools.host.sandbox.runners.bubblewrap import BubblewrapRunner
from handtools.text.diffs.unified_diff import unified_diff
from handtools.toolbox import CODING

NOTEBOOK, ASKED = "n.ipynb", "asked"
FILES = st.sampled_from(["a", "b", "d/c", ASKED])
FREE = st.sampled_from(["a", "b", "d/c", "d/x"])
LINES = st.lists(
    st.sampled_from(["one", "two", "three", "four", "five"]), min_size=1, max_size=5, unique=True
)
TEXTS = LINES.map(lambda lines: "".join(f"{line}\n" for line in lines))
AGENTS = st.sampled_from(["first", "second"])
POLICY = Policy(
    rules=(
        *Policy().rules,
        Rule("asked", "ask", "it is to be asked about", effects=frozenset({"change"}), paths=(ASKED,)),
    )
)


class Entry(NamedTuple):
    """What a path is: a file with its bytes or a link with its target, and the permissions of a file."""

    kind: str
    data: bytes
    mode: int = 0


def of_text(text: str, mode: int = 0o644) -> Entry:
    return Entry("file", text.encode(), mode)


@dataclass
class Done:
    """What a call did: for each path, what it was and what the call made of it."""

    before: dict[str, Entry | None]
    after: dict[str, Entry | None]
    standing: set[str] = field(default_factory=set)
    """The paths whose change is not taken back."""


def on_disk(root: Path) -> dict[str, Entry]:
    found = {}
    for folder, folders, names in os.walk(root):
        for name in [*names, *folders]:
            place = Path(folder, name)
            path = place.relative_to(root).as_posix()
            if place.is_symlink():
                found[path] = Entry("link", os.fsencode(os.readlink(place)))
            elif place.is_file():
                found[path] = Entry("file", place.read_bytes(), stat.S_IMODE(place.stat().st_mode))
    return found


class WorkspaceMachine(RuleBasedStateMachine):
    """What the files are follows from the calls that succeeded, and from nothing else."""

    calls = Bundle("calls")

    def __init__(self) -> None:
        super().__init__()
        if problem := BubblewrapRunner().unavailable_reason():
            pytest.skip(f"machine: {problem}")
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name, "work")
        (self.root / "d").mkdir(parents=True)
        cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": ["x = 1\n", "y"]}]
        book = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        self.model = {
            "d/keep": of_text("kept\n"),
            NOTEBOOK: of_text(json.dumps(book, indent=1) + "\n"),
            "a": of_text("one\ntwo\n"),
        }
        for path, entry in self.model.items():
            (self.root / path).write_bytes(entry.data)
            (self.root / path).chmod(entry.mode)
        self.done: dict[str, Done] = {}
        self.asked: dict[str, dict[str, Entry | None]] = {}
        """What each call that waits for an answer would make of which path."""
        self.boxes = {agent: self.opened() for agent in ("first", "second")}

    def opened(self) -> Toolbox:
        workspace = local_workspace(self.root, state=Path(self.folder.name, "state"))
        return Toolbox(CODING, workspace=workspace, policy=POLICY)

    def teardown(self) -> None:
        for box in self.boxes.values():
            anyio.run(box.aclose)
        self.folder.cleanup()

    def call(self, agent: str, tool: str, cancel: CancelToken | None = None, **args):
        call = Call(tool=tool, args=args, agent=agent, session=agent)
        listener = None
        if cancel is not None:

            def listener(event):
                if isinstance(event, Progressed):
                    cancel.cancel()

        async def run():
            return await self.boxes[agent].call(call, cancel=cancel, listener=listener)

        return call.id, anyio.run(run)

    def text(self, path: str) -> str | None:
        entry = self.model.get(path)
        return entry.data.decode() if entry is not None and entry.kind == "file" else None

    def landed(self, call_id: str, after: dict[str, Entry | None]):
        """Note what a call that succeeded made of the paths."""
        changed = {path: entry for path, entry in after.items() if self.model.get(path) != entry}
        if not changed:
            return multiple()
        self.done[call_id] = Done({path: self.model.get(path) for path in changed}, changed, set(changed))
        self.put(changed)
        return call_id

    def put(self, entries: dict[str, Entry | None]) -> None:
        for path, entry in entries.items():
            if entry is None:
                self.model.pop(path, None)
            else:
                self.model[path] = entry

    def settle(self, call_id: str, result, after: dict[str, Entry | None]):
        """A call that ended well did all of it, one that waits or failed nothing."""
        if result.status == "pending":
            self.asked[call_id] = after
            return multiple()
        return self.landed(call_id, after) if result.ok else multiple()

    # Files

    @rule(target=calls, agent=AGENTS, path=FILES, text=TEXTS)
    def write(self, agent, path, text):
        was = self.model.get(path)
        if was is not None and was.kind == "link":
            return multiple()
        call_id, result = self.call(
            agent, "write", path=path, content=text, mode="create" if was is None else "overwrite"
        )
        if was is None or was.data != text.encode():
            assert result.ok or result.status == "pending" or result.fault.code == "stale", result.text
        return self.settle(call_id, result, {path: of_text(text, was.mode if was else 0o644)})

    @rule(
        target=calls,
        agent=AGENTS,
        path=FILES,
        line=st.integers(0, 4),
        word=st.sampled_from(["six", "seven"]),
    )
    def edit(self, agent, path, line, word):
        text = self.text(path)
        if not text:
            return multiple()
        old = text.splitlines()[line % len(text.splitlines())]
        call_id, result = self.call(agent, "edit", path=path, old_string=f"{old}\n", new_string=f"{word}\n")
        return self.settle(
            call_id,
            result,
            {path: of_text(text.replace(f"{old}\n", f"{word}\n", 1), self.model[path].mode)},
        )

    @rule(target=calls, agent=AGENTS, texts=st.dictionaries(FREE, TEXTS, min_size=1, max_size=3))
    def patch(self, agent, texts):
        wanted = {
            path: text
            for path, text in texts.items()
            if self.text(path) != text and (path not in self.model or self.text(path) is not None)
        }
        if not wanted:
            return multiple()
        diff = "".join(unified_diff(path, self.text(path), text) for path, text in wanted.items())
        call_id, result = self.call(agent, "patch", patch=diff)
        assert result.ok, result.text
        modes = {path: self.model[path].mode if path in self.model else 0o644 for path in wanted}
        return self.settle(
            call_id, result, {path: of_text(text, modes[path]) for path, text in wanted.items()}
        )

    @rule(target=calls, agent=AGENTS, value=st.integers(0, 9))
    def edit_notebook(self, agent, value):
        text = self.text(NOTEBOOK)
        book = json.loads(text)
        old = book["cells"][0]["source"][0]
        if old == f"x = {value}\n":
            return multiple()
        call_id, result = self.call(
            agent, "edit", path=NOTEBOOK, old_string=old.strip(), new_string=f"x = {value}"
        )
        book["cells"][0]["source"][0] = f"x = {value}\n"
        after = of_text(json.dumps(book, indent=1) + "\n", self.model[NOTEBOOK].mode)
        return self.settle(call_id, result, {NOTEBOOK: after})

    # Commands

    def run(self, agent, script, after):
        call_id, result = self.call(agent, "bash", command=script)
        assert result.ok or result.status == "pending", result.text
        return self.settle(call_id, result, after)

    @rule(target=calls, agent=AGENTS, path=FILES, text=TEXTS, code=st.sampled_from([0, 3]))
    def run_printf(self, agent, path, text, code):
        was = self.model.get(path)
        if was is not None and was.kind == "link":
            return multiple()
        call_id, result = self.call(
            agent, "bash", command=f"printf %s {shlex.quote(text)} > {path}; exit {code}"
        )
        after = {path: of_text(text, was.mode if was else 0o644)}
        if result.status == "pending":
            return self.settle(call_id, result, after)
        # What a command wrote before it failed stays, as in any shell; its exit code is no error of the call.
        assert result.ok, result.text
        return self.landed(call_id, after)

    @rule(target=calls, agent=AGENTS, one=FREE, other=FREE)
    def run_move(self, agent, one, other):
        if one not in self.model or one == other:
            return multiple()
        return self.run(agent, f"mv -f {one} {other}", {other: self.model[one], one: None})

    @rule(target=calls, agent=AGENTS, path=FREE)
    def run_remove(self, agent, path):
        return self.run(agent, f"rm -f {path}", {path: None}) if path in self.model else multiple()

    @rule(target=calls, agent=AGENTS, path=FREE, mode=st.sampled_from([0o644, 0o755, 0o600]))
    def run_chmod(self, agent, path, mode):
        was = self.model.get(path)
        if was is None or was.kind == "link":
            return multiple()
        return self.run(agent, f"chmod {mode:o} {path}", {path: was._replace(mode=mode)})

    @rule(
        target=calls,
        agent=AGENTS,
        path=st.sampled_from(["b", "d/x"]),
        place=st.sampled_from(["a", "keep"]),
    )
    def run_link(self, agent, path, place):
        return self.run(agent, f"ln -sfn {place} {path}", {path: Entry("link", place.encode())})

    # Questions

    @rule(target=calls, agent=AGENTS, allow=st.booleans(), data=st.data())
    def answer(self, agent, allow, data):
        if not self.asked:
            return multiple()
        call_id = data.draw(st.sampled_from(sorted(self.asked)))
        after = self.asked.pop(call_id)
        before = dict(self.model)

        async def resume():
            return await self.boxes[agent].resume(call_id, Reply(allow=allow))

        result = anyio.run(resume)
        if not allow:
            assert not result.ok
            return multiple()
        now = on_disk(self.root)
        if now == before:
            # Others changed the path since the question: it is asked again, or refused.
            if result.status == "pending":
                self.asked[call_id] = after
            return multiple()
        assert result.status != "pending"
        [path] = after
        # The tool runs again on what is there now, so an edit may keep what others wrote.
        assert {each for each in now.keys() | before.keys() if now.get(each) != before.get(each)} == {path}
        return self.landed(call_id, {path: now.get(path)})

    # Cancellations

    @rule(agent=AGENTS, path=FILES, text=TEXTS)
    def cancelled_before_it_begins(self, agent, path, text):
        token = CancelToken()
        token.cancel()
        _, result = self.call(agent, "write", token, path=path, content=text, mode="overwrite")
        assert result.status == "cancelled", result.text

    @rule(target=calls, agent=AGENTS, path=FREE, text=TEXTS)
    def cancelled_while_it_runs(self, agent, path, text):
        was = self.model.get(path)
        if was is not None and was.kind == "link":
            return multiple()
        script = f"printf %s {shlex.quote(text)} > {path}; echo begun; sleep 60"
        call_id, result = self.call(agent, "bash", CancelToken(), command=script)
        assert result.status == "cancelled", result.text
        now, after = on_disk(self.root).get(path), of_text(text, was.mode if was else 0o644)
        # What it had written is there and recorded, or it is not there.
        assert now in (was, after)
        return self.landed(call_id, {path: now})

    # Two at once

    @rule(target=calls, one=FREE, other=FREE, texts=st.tuples(TEXTS, TEXTS))
    def both_write(self, one, other, texts):
        if any(path in self.model and self.model[path].kind == "link" for path in (one, other)):
            return multiple()
        calls, results = {}, {}
        for agent, path, text in zip(self.boxes, (one, other), texts, strict=True):
            args = {"command": f"printf %s {shlex.quote(text)} > {path}"}
            calls[agent] = Call(tool="bash", args=args, agent=agent, session=agent)

        async def run(agent):
            results[agent] = await self.boxes[agent].call(calls[agent])

        async def run_both():
            async with anyio.create_task_group() as group:
                for agent in calls:
                    group.start_soon(run, agent)

        anyio.run(run_both)
        now = on_disk(self.root)
        entries = [
            of_text(text, self.model[path].mode if path in self.model else 0o644)
            for path, text in zip((one, other), texts, strict=True)
        ]
        if one == other:
            # One of them was last, or found that the other was in between and says so.
            assert now.get(one) in entries
            self.put({one: now.get(one)})
            return multiple()
        assert all(result.ok for result in results.values()), results
        ids = [calls[agent].id for agent in calls]
        landed = [self.landed(ids[0], {one: entries[0]}), self.landed(ids[1], {other: entries[1]})]
        return multiple(*(each for each in landed if isinstance(each, str)))

    # A person, and a new start

    @rule(path=FREE, text=TEXTS)
    def person_writes(self, path, text):
        was = self.model.get(path)
        if was is not None and was.kind == "link":
            return
        (self.root / path).write_text(text)
        if was is None:
            (self.root / path).chmod(0o644)
        self.model[path] = of_text(text, was.mode if was else 0o644)

    @rule(agent=AGENTS)
    def starts_anew(self, agent):
        anyio.run(self.boxes[agent].aclose)
        self.boxes[agent] = self.opened()

    # Undo and redo

    @rule(agent=AGENTS, call_id=calls, action=st.sampled_from(["undo", "redo"]))
    def undo_or_redo(self, agent, call_id, action):
        done = self.done[call_id]
        _, result = self.call(agent, "undo", scope="call", name=call_id, action=action)
        if result.status == "pending":
            return  # it would change the path that is asked about
        wanted = done.standing if action == "undo" else done.after.keys() - done.standing
        source, goal = (done.after, done.before) if action == "undo" else (done.before, done.after)
        if not wanted:
            assert not result.ok and result.fault.code == "nothing_to_undo", result.text
            return
        conflicts = {kept.path for kept in result.details.conflicts}
        for path in sorted(wanted):
            now = self.model.get(path)
            if now == goal[path]:
                done.standing ^= {path}
            elif now == source[path]:
                assert path in result.details.restored, (path, result.text)
                self.put({path: goal[path]})
                done.standing ^= {path}
            else:
                assert path in conflicts, (path, result.text)

    @invariant()
    def the_files_are_what_the_model_says(self):
        assert on_disk(self.root) == self.model


TestWorkspaceMachine = WorkspaceMachine.TestCase
# A history takes a second or two: a fiftieth of the profile's examples, and none to make a failure smaller.
TestWorkspaceMachine.settings = settings(
    max_examples=max(settings.default.max_examples // 50, 2),
    stateful_step_count=20,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
