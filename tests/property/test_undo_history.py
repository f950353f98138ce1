"""A machine of edits, hand edits, undos and redos, held against a plain dictionary."""

import tempfile
from dataclasses import replace
from pathlib import Path

import anyio
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from handtools import Call, Change, Toolbox, local_workspace
from handtools.host.files.local_files import LocalFiles
from handtools.runtime.journaled_transactions import recover_transactions
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.toolbox import CODING

PATHS = st.sampled_from(["a", "b", "d/c"])
CONTENT = st.text("xyz\n", min_size=1, max_size=6).map(str.encode)


class History(RuleBasedStateMachine):
    """What the files are must always follow from the calls; a person's bytes are never overwritten by an undo."""

    calls = Bundle("calls")

    def __init__(self):
        super().__init__()
        self.number = 0
        self.box = self.make_box()
        self.model: dict[str, bytes] = {}
        self.changes: dict[str, tuple[str, bytes | None, bytes]] = {}
        self.standing: set[str] = set()

    def make_box(self):
        return memory_toolbox({})

    def content(self, letters):
        return letters

    def call(self, tool, **args):
        self.number += 1
        call = Call(tool=tool, args=args, agent=f"agent {self.number}")
        return call.id, anyio.run(self.box.call, call)

    @rule(target=calls, path=PATHS, content=CONTENT)
    def write(self, path, content):
        content = self.content(content)
        mode = "overwrite" if path in self.model else "create"
        call_id, result = self.call("write", path=path, content=content.decode(), mode=mode)
        before = self.model.get(path)
        assert result.ok == (before != content), result.text
        if result.ok:
            self.changes[call_id] = (path, before, content)
            self.standing.add(call_id)
            self.model[path] = content
        return call_id

    @rule(path=PATHS, content=CONTENT)
    def person_writes(self, path, content):
        if path in self.model:
            content = self.content(content)
            self.put(path, content)
            self.model[path] = content

    def put(self, path, content):
        files = self.box.workspace.files
        files.perform(files.plan([Change.of(path, before=self.model[path], after=content)]))

    @rule(call_id=calls)
    def undo(self, call_id):
        _, result = self.call("undo", scope="call", name=call_id)
        self.settle(call_id, result, standing=True)

    @rule(call_id=calls)
    def redo(self, call_id):
        _, result = self.call("undo", scope="call", name=call_id, action="redo")
        self.settle(call_id, result, standing=False)

    def settle(self, call_id, result, *, standing):
        if call_id not in self.changes or (call_id in self.standing) != standing:
            # Of a call that made a folder, that may still be taken back or brought back by itself.
            path = self.changes.get(call_id, ("",))[0]
            assert (
                path not in result.details.restored if result.ok else result.fault.code == "nothing_to_undo"
            )
            return
        path, before, after = self.changes[call_id]
        expected, becomes = (after, before) if standing else (before, after)
        now = self.model.get(path)
        if now == becomes != expected:
            assert result.ok, result.text  # it is as it should be already
            self.standing.symmetric_difference_update({call_id})
            return
        if now != expected:
            assert path in [kept.path for kept in result.details.conflicts]
            return
        assert path in result.details.restored, result.text
        self.standing.symmetric_difference_update({call_id})
        if becomes is None:
            del self.model[path]
        else:
            self.model[path] = becomes

    @invariant()
    def files_are_what_the_model_says(self):
        files = self.box.workspace.files
        for path in ("a", "b", "d/c"):
            node = files.node(path)
            assert (None if node is None else node.data) == self.model.get(path)


class LargeHistory(History):
    """The same on disk, where all but the shortest files count as large: they are moved aside, and told by a mark.

    Every content is another one, since a mark tells two files with the same bytes apart.
    """

    def make_box(self):
        self.folder = tempfile.TemporaryDirectory()
        root = Path(self.folder.name) / "work"
        root.mkdir()
        workspace = local_workspace(root, state=Path(self.folder.name) / "state")
        files = LocalFiles(root, backups=workspace.files.backups, large_bytes=4)
        return Toolbox(CODING, workspace=replace(workspace, files=files))

    def content(self, letters):
        self.number += 1
        return letters + str(self.number).encode()

    def put(self, path, content):
        (self.box.workspace.files.root / path).write_bytes(content)

    @rule()
    def starts_anew(self):
        anyio.run(recover_transactions, self.box.workspace)

    def teardown(self):
        anyio.run(self.box.aclose)
        self.folder.cleanup()


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)

TestLargeHistory = LargeHistory.TestCase
TestLargeHistory.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
