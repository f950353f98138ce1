"""A machine of edits, hand edits, undos and redos, held against a plain dictionary."""

import anyio
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from handtools import Call, Change
from handtools.testing.fakes import memory_toolbox

PATHS = st.sampled_from(["a", "b", "d/c"])
CONTENT = st.text("xyz\n", min_size=1, max_size=6).map(str.encode)


class History(RuleBasedStateMachine):
    """What the files are must always follow from the calls; a person's bytes are never overwritten by an undo."""

    calls = Bundle("calls")

    def __init__(self):
        super().__init__()
        self.number = 0
        self.box = memory_toolbox({})
        self.model: dict[str, bytes] = {}
        self.changes: dict[str, tuple[str, bytes | None, bytes]] = {}
        self.standing: set[str] = set()

    def call(self, tool, **args):
        self.number += 1
        call = Call(tool=tool, args=args, agent=f"agent {self.number}")
        return call.id, anyio.run(self.box.call, call)

    @rule(target=calls, path=PATHS, content=CONTENT)
    def write(self, path, content):
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
            files = self.box.workspace.files
            files.perform(files.plan([Change.of(path, before=self.model[path], after=content)]))
            self.model[path] = content

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
            assert result.fault.code == "nothing_to_undo"
            return
        path, before, after = self.changes[call_id]
        expected, becomes = (after, before) if standing else (before, after)
        if self.model.get(path) != expected:
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


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
