"""After a change: what the steps do, and what they never do."""

import time
from dataclasses import dataclass, field

import pytest

from handtools.cli import reject
from handtools.core.call import Call
from handtools.core.language import (
    Diagnostic,
    DiagnosticDelta,
    DiagnosticReport,
    DiagnosticReview,
    FormattingOutcome,
)
from handtools.core.undo import PERSON_AGENT_NAME, ReviewPoint
from handtools.runtime.policy import Policy
from handtools.runtime.policy.rules import Rule
from handtools.runtime.review import ChangeReview
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.testing.stubs import MemoryLanguage
from handtools.text.search.glob import any_covers
from handtools.toolbox import CODING

pytestmark = pytest.mark.anyio


@dataclass
class Upper:
    """A formatter that shouts, or refuses."""

    why: str = ""
    asked: list[tuple[str, bytes | None, bytes]] = field(default_factory=list)

    def formats(self, path):
        return path.endswith(".py")

    async def format(self, path, before, after, *, private_globs):
        self.asked.append((path, before, after))
        if self.why:
            return FormattingOutcome("upper", None, self.why)
        shouted = after.upper()
        return None if shouted == after else FormattingOutcome("upper", shouted)


def box(files, **options):
    return memory_toolbox(files, **options)


async def edit(tools, old, new, path="a.py"):
    return await tools.call("edit", {"path": path, "old_string": old, "new_string": new})


async def test_the_model_is_told_what_its_edit_broke_after_what_it_did():
    tools = box({"a.py": b"one\n"}, language=MemoryLanguage())
    result = await edit(tools, "one", "ERROR undefined name")
    assert result.ok
    said = result.content[-1].text
    assert said == "The change was applied. Errors: 1 new (memory).\na.py:1:1 undefined name"
    assert "undefined name" not in result.content[0].text.split("@@")[0]


async def test_old_errors_that_only_moved_are_not_new():
    before = b"head\n" + b"".join(b"x = %d  # ERROR old %d\n" % (n, n) for n in range(21))
    tools = box({"a.py": before}, language=MemoryLanguage())
    result = await edit(tools, "head\n", "head\n\n\n\n\nERROR fresh\n")
    assert result.content[-1].text.splitlines() == [
        "The change was applied. Errors: 1 new, 21 remaining (memory).",
        "a.py:6:1 fresh",
    ]


async def test_a_fix_is_counted():
    tools = box({"a.py": b"ERROR a\nERROR b\n"}, language=MemoryLanguage())
    assert "Errors: 1 fixed, 1 remaining" in (await edit(tools, "ERROR a", "fine")).text
    assert "No errors, 1 fixed" in (await edit(tools, "ERROR b", "fine too")).text


async def test_what_nobody_knows_is_never_called_clean():
    tools = box({"a.py": b"one\n"}, language=MemoryLanguage(unknown="server still checking"))
    said = (await edit(tools, "one", "two")).content[-1].text
    assert "unknown (memory: server still checking); not known to be clean" in said
    assert "No errors" not in said


async def test_at_most_twenty_errors_of_a_file_are_shown():
    tools = box({"a.py": b"one\n"}, language=MemoryLanguage())
    said = (await edit(tools, "one", "\n".join(f"ERROR {n}" for n in range(30)))).content[-1].text
    assert said.count("a.py:") == 20
    assert said.endswith("… and 10 more in a.py.")


async def test_hidden_files_are_in_no_review():
    class Telling(MemoryLanguage):
        async def review(self, changes, *, ignored, private_globs, timeout, late):
            self.private_globs.append(tuple(private_globs))
            broken = (Diagnostic("secret/key.py", 1, 0, "a secret"),)
            review = DiagnosticReview(
                elsewhere=(DiagnosticDelta("secret/key.py", broken),),
                verdicts=(DiagnosticReport("a.py", "memory", "fresh", broken),),
            )
            late(review)
            return review

    heard = []
    language = Telling()
    rule = Rule("no-secrets", "deny", "Secrets.", effects=frozenset({"read"}), paths=("secret/**",))
    tools = box(
        {"a.py": b"one\n"}, language=language, policy=Policy(rules=(rule,)), listeners=[heard.append]
    )
    result = await edit(tools, "one", "two")
    await tools.aclose()
    assert "secret" not in result.text
    assert not any("secret" in str(event) for event in heard if "Reviewed" in str(event))
    assert any_covers(language.private_globs[0], "secret/a.py")


async def test_what_comes_late_is_announced():
    class Slow(MemoryLanguage):
        async def review(self, changes, *, ignored, private_globs, timeout, late):
            late(DiagnosticReview(deltas=(DiagnosticDelta("a.py", (Diagnostic("a.py", 3, 0, "late"),)),)))
            return DiagnosticReview(verdicts=(DiagnosticReport("a.py", "memory", "unknown"),))

    heard = []
    tools = box({"a.py": b"one\n"}, language=Slow(), listeners=[heard.append])
    await edit(tools, "one", "two")
    await tools.aclose()
    assert any(type(event).__name__ == "Reviewed" and event.review.deltas for event in heard)


async def test_a_read_warms_the_server_of_its_file_and_says_nothing():
    language = MemoryLanguage()
    tools = box({"a.py": b"one\n", "b.txt": b"two\n"}, language=language)
    result = await tools.call("read", {"path": "a.py"})
    await tools.call("read", {"path": "b.txt"})
    assert language.warmed == ["a.py"]
    assert "applied" not in result.text


async def test_an_undo_is_reviewed_and_not_formatted():
    formatters = Upper()
    tools = box({"a.py": b"ERROR old\n"}, language=MemoryLanguage(), formatters=formatters)
    await edit(tools, "ERROR old", "NEW")
    asked = len(formatters.asked)
    result = await tools.call("undo", {"scope": "path", "name": "a.py"})
    assert "Errors: 1 new" in result.text
    assert len(formatters.asked) == asked
    assert tools.workspace.files.files["a.py"] == b"ERROR old\n"


@pytest.mark.parametrize("rule", ["free", "asked"])
async def test_a_version_that_is_brought_back_has_exactly_its_bytes(rule):
    policy = Policy(
        rules=(Rule("mine", "ask", "why", tools=("undo",)),) if rule == "asked" else (), unattended="allow"
    )
    tools = box({"a.py": b"one\n"}, formatters=Upper(), policy=policy)
    await edit(tools, "one", "two")
    await edit(tools, "TWO", "three")
    for version, data in ((0, b"one\n"), (1, b"two\n"), (2, b"TWO\n")):
        result = await tools.call("undo", {"scope": "path", "name": "a.py", "version": version})
        assert "formatted" not in result.text
        assert tools.workspace.files.files["a.py"] == data


async def test_a_persons_undo_asks_no_server():
    language = MemoryLanguage()
    tools = box({"a.py": b"ERROR old\n"}, language=language)
    await edit(tools, "ERROR old", "NEW")
    asked = len(language.private_globs)
    undone = await tools.call(Call(tool="undo", args={"scope": "last"}, agent=PERSON_AGENT_NAME))
    assert tools.workspace.files.files["a.py"] == b"ERROR old\n"
    assert "Errors" not in undone.text
    assert len(language.private_globs) == asked


async def test_what_a_review_leaves_is_exactly_what_the_person_saw():
    tools = box({"a.py": b"one\n"}, formatters=Upper(), tools=[*CODING, reject.review])
    await edit(tools, "one", "two")
    point = ReviewPoint("session", "default")
    parts = ChangeReview(tools.workspace.journal, tools.workspace.files, point).file("a.py").parts
    args = {"scope": point.scope, "name": point.name, "parts": {"a.py": [part.id for part in parts]}}
    assert "formatted" not in (await tools.call("review", args)).text
    assert tools.workspace.files.files["a.py"] == b"one\n"


async def test_what_a_formatter_does_is_a_change_of_its_own_that_the_model_sees_and_can_use():
    tools = box({"a.py": b"ONE\n"}, formatters=Upper())
    result = await edit(tools, "ONE", "two")
    assert "upper then formatted a.py:" in result.text
    assert "+TWO" in result.text
    assert tools.workspace.files.files["a.py"] == b"TWO\n"
    assert (await edit(tools, "TWO", "THREE")).ok


async def test_a_formatter_sees_what_was_there_before_the_whole_call():
    formatters = Upper(why="it timed out")
    tools = box({"a.py": b"one\n"}, formatters=formatters)
    result = await edit(tools, "one", "two")
    assert formatters.asked == [("a.py", b"one\n", b"two\n")]
    assert "a.py: not formatted: it timed out" in result.text
    assert tools.workspace.files.files["a.py"] == b"two\n"


async def test_an_undo_by_path_reverts_the_formatters_part_too():
    tools = box({"a.py": b"one\n"}, formatters=Upper())
    await edit(tools, "one", "two")
    assert tools.workspace.files.files["a.py"] == b"TWO\n"
    assert (await tools.call("undo", {"name": "a.py"})).ok
    assert tools.workspace.files.files["a.py"] == b"one\n"
    assert (await tools.call("undo", {"name": "a.py", "action": "redo"})).ok
    assert tools.workspace.files.files["a.py"] == b"TWO\n"
    await tools.call("write", {"path": "new/b.py", "content": "b\n"})
    assert (await tools.call("undo", {"name": "new/b.py"})).details.removed == ["new/b.py", "new"]


async def test_diagnostics_are_about_the_formatted_text():
    tools = box({"a.py": b"ONE\n"}, language=MemoryLanguage(), formatters=Upper())
    assert "Errors: 1 new" in (await edit(tools, "ONE", "error shout")).text


async def test_without_a_server_a_change_costs_nothing_that_can_be_noticed():
    from handtools.core.call import Call
    from handtools.core.result import Result
    from handtools.runtime.after_call import after_change
    from handtools.runtime.approval.gate import ApprovalGate
    from handtools.runtime.guards.files import GuardedFiles

    tools = box({"a.py": b"one\n"})
    call = Call(tool="edit", args={})
    gate = ApprovalGate(call, Policy(), None, tools.workspace.journal, lambda _: None, frozenset())
    files = GuardedFiles(call, tools.workspace, gate, lambda _: None)
    from handtools.core.changes import Change, ChangeSet

    await files.apply(ChangeSet.of(Change.of("a.py", before=b"one\n", after=b"two\n")))
    took = []
    for _ in range(200):
        began = time.perf_counter()
        await after_change(Result("", None), files, time.monotonic() + 600)
        took.append(time.perf_counter() - began)
    assert min(took) < 0.001


async def test_ignored_and_generated_files_are_not_checked():
    tools = box({"a.py": b"one\n", ".gitignore": b"out/\n"}, language=MemoryLanguage())
    patch = "".join(
        f"*** Add File: {path}\n+ERROR here\n" for path in ("b.py", "out/c.py", "node_modules/d/e.py")
    )
    result = await tools.call("patch", {"patch": f"*** Begin Patch\n{patch}*** End Patch\n"})
    said = result.content[-1].text
    assert "b.py:1" in said
    assert "c.py:" not in said and "e.py:" not in said


async def test_many_files_with_unknown_errors_take_one_line():
    tools = box({}, language=MemoryLanguage(unknown="still starting"))
    patch = "".join(f"*** Add File: m{number}.py\n+x = 1\n" for number in range(30))
    result = await tools.call("patch", {"patch": f"*** Begin Patch\n{patch}*** End Patch\n"})
    [line] = [row for row in result.content[-1].text.splitlines() if "errors unknown" in row]
    assert line.startswith("m0.py, m1.py, m2.py and 27 more: errors unknown (memory: still starting)")
