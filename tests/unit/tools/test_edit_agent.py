"""Edit agent: right or refused, whatever the model writes; the model here is a script."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import anyio
import pytest

from handtools import Call, Policy, Rule
from handtools.core.call import CancelToken
from handtools.core.callbacks import Callbacks
from handtools.core.events import Progressed
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.toolbox import CODING
from handtools.tools.edit_agent import edit_agent
from handtools.tools.editing.edit_agent_conversation import MAX_EDIT_AGENT_ROUNDS
from handtools.tools.editing.edit_agent_messages import AnswerTags

DONE = "<done_1/>"
CODE = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
TWINS = "if a:\n    stop()\nelse:\n    go()\nif b:\n    stop()\nelse:\n    wait()\n"
GO_CODE = "func f() {\n\tx := 1\n\ty := 99\n\treturn\n}\n"


def e(old: str, new: str) -> str:
    return AnswerTags("_1").render_edit(old, new) + "\n"


@dataclass
class Script:
    """Answers in turn, in pieces of a size; the last one again and again."""

    answers: list[str]
    size: int = 10_000
    asked: list[str] = field(default_factory=list)
    closed: int = 0

    async def __call__(self, question: str) -> AsyncIterator[str]:
        self.asked.append(question)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        try:
            for at in range(0, len(answer), self.size):
                yield answer[at : at + self.size]
        finally:
            self.closed += 1


async def revised(body: bytes, script: Script, instructions: str = "Do it.", **options):
    box = memory_toolbox(
        {"a.py": body}, tools=[*CODING, edit_agent], callbacks=Callbacks(model=script), **options
    )
    result = await box.call("edit_agent", {"path": "a.py", "instructions": instructions})
    return result, box.workspace.files.files["a.py"], box


RIGHT: list[tuple[str, str, list[str], str]] = [
    ("one edit", CODE, [e("return 1", "return 10") + DONE], CODE.replace("return 1", "return 10")),
    (
        "two edits",
        CODE,
        [e("return 1", "return 10") + e("return 2", "return 20") + DONE],
        CODE.replace("return 1", "return 10").replace("return 2", "return 20"),
    ),
    ("an edit of what an edit left", "a\n", [e("a", "b") + e("b", "c") + DONE], "c\n"),
    ("a deletion", "a\nb\nc\n", [e("a\nb\n", "a\n") + DONE], "a\nc\n"),
    ("a line that goes", "a\nbb\nc\n", [e("bb", "") + DONE], "a\nc\n"),
    ("a word that goes", "a bb\nc\n", [e(" bb", "") + DONE], "a\nc\n"),
    ("the last line goes", "a\r\nbb\r\n", [e("bb", "") + DONE], "a\r\n"),
    ("an insertion", "a\nc\n", [e("a", "a\nb") + DONE], "a\nb\nc\n"),
    ("CRLF", "a\r\nb\r\n", [e("a\nb", "a\nx\nb") + DONE], "a\r\nx\r\nb\r\n"),
    ("no final line end", "a\nb", [e("b", "c") + DONE], "a\nc"),
    ("an empty file", "", [e("", "a\n") + DONE], "a\n"),
    ("chatter", "a\n", ["Sure! Here it is:\n" + e("a", "b") + "That was it. " + DONE + " Bye."], "b\n"),
    ("a fence around it", "a\n", ["```xml\n" + e("a", "b") + DONE + "\n```\n"], "b\n"),
    ("tags on one line", "a\n", ["<old_1>a</old_1><new_1>b</new_1><done_1/>"], "b\n"),
    ("an answer in CRLF", "a\nb\n", [(e("a\nb", "a\nc") + DONE).replace("\n", "\r\n")], "a\nc\n"),
    ("a dollar and a backslash", "a\n", [e("a", r"$& \1 \n") + DONE], "$& \\1 \\n\n"),
    ("plain tags in the text", "a\n", [e("a", "</old><new>b</new>") + DONE], "</old><new>b</new>\n"),
    ("letters beyond ASCII", "größe = 1  # ✓\n", [e("größe = 1", "größe = 2") + DONE], "größe = 2  # ✓\n"),
    (
        "a slip in the indentation",
        CODE,
        [e("def two():\n  return 2", "def two():\n  return 3") + DONE],
        CODE.replace("return 2", "return 3"),
    ),
    (
        "twenty edits",
        "".join(f"v{n} = {n}\n" for n in range(20)),
        ["".join(e(f"v{n} = {n}\n", f"v{n} = {n + 1}\n") for n in range(20)) + DONE],
        "".join(f"v{n} = {n + 1}\n" for n in range(20)),
    ),
    (
        "a hallucinated text, then the real one",
        CODE,
        [e("return one", "return 10") + DONE, e("return 1", "return 10") + DONE],
        CODE.replace("return 1", "return 10"),
    ),
    (
        "one good and one hallucinated, then the real one",
        CODE,
        [e("return 1", "return 10") + e("return three()", "x") + DONE, e("return 2", "return 20") + DONE],
        CODE.replace("return 1", "return 10").replace("return 2", "return 20"),
    ),
    (
        "a value that is not there in a block that is",
        GO_CODE,
        [
            e("x := 1\n\ty := 2\n\treturn", "x := 1\n\ty := 3\n\treturn") + DONE,
            e("x := 1\n\ty := 99\n\treturn", "x := 1\n\ty := 3\n\treturn") + DONE,
        ],
        GO_CODE.replace("99", "3"),
    ),
    (
        "an ambiguous text, then more lines of it",
        TWINS,
        [e("    stop()", "    halt()") + DONE, e("if b:\n    stop()", "if b:\n    halt()") + DONE],
        "if a:\n    stop()\nelse:\n    go()\nif b:\n    halt()\nelse:\n    wait()\n",
    ),
    (
        "a text that an edit made ambiguous",
        "a\nb\n",
        [e("a", "b") + e("b", "c") + DONE, e("b\nb\n", "b\nc\n") + DONE],
        "b\nc\n",
    ),
    ("broken off in the old text", "a\nb\n", [e("a", "x") + "<old_1>\nb", e("b", "y") + DONE], "x\ny\n"),
    (
        "broken off in the new text",
        "a\nb\n",
        [e("a", "x") + "<old_1>\nb\n</old_1>\n<new_1>\ny", e("b", "yes") + DONE],
        "x\nyes\n",
    ),
    ("broken off in a tag", "a\nb\n", [e("a", "x") + "<old_1", e("b", "y") + DONE], "x\ny\n"),
    ("broken off between two edits", "a\nb\n", [e("a", "x"), e("b", "y") + DONE], "x\ny\n"),
    ("broken off before the end", "a\n", [e("a", "x"), DONE], "x\n"),
    ("nothing at first", "a\n", ["", e("a", "x") + DONE], "x\n"),
    ("a new text without an old one", "a\n", ["<new_1>\nx\n</new_1>" + DONE, e("a", "x") + DONE], "x\n"),
    (
        "an old text without a new one",
        "a\nb\n",
        ["<old_1>\na\n</old_1>\n" + e("b", "y") + DONE, e("a", "x") + DONE],
        "x\ny\n",
    ),
    (
        "an old text that is not closed",
        "a\nb\n",
        ["<old_1>\na\n<new_1>\nx\n</new_1>" + e("b", "y") + DONE, e("a", "x") + e("b", "y") + DONE],
        "x\ny\n",
    ),
    (
        "an insertion sent once more with the next answer",
        "a\nc\n",
        [e("a", "a\nb") + e("no", "x") + DONE, e("a", "a\nb") + e("c", "d") + DONE],
        "a\nb\nd\n",
    ),
    (
        "an insertion sent once more with more lines",
        "0\na\nc\n",
        [e("a", "a\nb") + e("no", "x") + DONE, e("0\na", "0\na\nb") + e("c", "d") + DONE, DONE],
        "0\na\nb\nd\n",
    ),
    ("the same edit twice in one answer", "a\nc\n", [e("a", "a\nb") + e("a", "a\nb") + DONE], "a\nb\nc\n"),
]

REFUSED: list[tuple[str, str, list[str], str]] = [
    ("hallucinated again and again", CODE, [e("return one", "return 10") + DONE], "no_match"),
    ("one good, one never", CODE, [e("return 1", "return 10") + e("nope()", "x") + DONE], "no_match"),
    ("ambiguous again and again", TWINS, [e("    stop()", "    halt()") + DONE], "no_match"),
    ("broken off again and again", "a\n", ["<old_1>\na"], "no_match"),
    ("an edit, never an end", "a\n", [e("a", "x")], "no_match"),
    ("nothing at all", "a\n", [""], "no_match"),
    ("nothing but talk", "a\n", ["I would rather not."], "no_match"),
    ("no edit and an end", "a\n", [DONE], "invalid_input"),
    ("edits that come to nothing", "a\n", [e("a", "b") + e("b", "a") + DONE], "invalid_input"),
    ("old and new the same", "a\n", [e("a", "a") + DONE], "no_match"),
    ("code left out", CODE, [e("def one():\n    return 1", "# ... rest unchanged") + DONE], "no_match"),
    ("it can't be done", "a\n", ["<cannot_1>There is no b.</cannot_1>"], "invalid_input"),
    (
        "an edit, then it can't be done",
        "a\n",
        [e("a", "b") + "<cannot_1>No c.</cannot_1>"],
        "invalid_input",
    ),
    ("an answer without end", "a\n", ["<old_1>" + "x" * 1_200_000], "too_large"),
]


@pytest.mark.claim("edit_agent.instructions")
@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(("body", "answers", "after"), [c[1:] for c in RIGHT], ids=[c[0] for c in RIGHT])
async def test_the_file_is_as_the_model_meant(body, answers, after, size):
    result, left, _ = await revised(body.encode(), Script(answers, size))
    assert result.ok, result.text
    assert left == after.encode()


@pytest.mark.claim("edit_agent.whole")
@pytest.mark.parametrize("size", [7, 100_000])
@pytest.mark.parametrize(("body", "answers", "code"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
async def test_what_can_not_be_made_right_leaves_the_file_as_it_was(body, answers, code, size):
    script = Script(answers, size)
    result, left, _ = await revised(body.encode(), script)
    assert result.fault is not None
    assert result.fault.code == code
    assert "Nothing was written" in result.text
    assert left == body.encode()
    assert len(script.asked) == script.closed <= MAX_EDIT_AGENT_ROUNDS


async def test_bytes_that_are_no_utf8_stay_as_they_are():
    _, left, _ = await revised("x = 'é'\ny = 1\n".encode("latin-1"), Script([e("y = 1", "y = 2") + DONE]))
    assert left == "x = 'é'\ny = 2\n".encode("latin-1")


async def test_a_file_with_our_tags_in_it_is_edited_with_others():
    marks = AnswerTags("_2")
    script = Script([marks.render_edit("<old_1>", "<old_3>") + marks.done])
    result, left, _ = await revised(b"tag = '<old_1>'\n", script)
    assert result.ok, result.text
    assert left == b"tag = '<old_3>'\n"


async def test_an_edit_that_is_there_already_is_done_with_nothing_written():
    body = b"def one():\n    check()\n    return 1\n"
    script = Script([e("    return 1", "    check()\n    return 1") + DONE])
    result, after, _ = await revised(body, script)
    assert result.ok, result.text
    assert after == body
    assert "Already applied: 1" in result.text


async def test_a_refused_edit_is_asked_for_again_with_the_real_text():
    script = Script([e("    return won", "    return 10") + DONE, e("return 1", "return 10") + DONE])
    await revised(CODE.encode(), script)
    assert len(script.asked) == 2
    assert "Refused:" in script.asked[1]
    assert "return 1\n" in script.asked[1].partition("So far:")[2]


async def test_the_first_edit_is_made_before_the_answer_ends():
    made = anyio.Event()

    async def slow(question: str) -> AsyncIterator[str]:
        yield e("return 1", "return 10")
        with anyio.fail_after(60):
            await made.wait()
        yield e("return 2", "return 20") + DONE

    def hear(event: object) -> None:
        if isinstance(event, Progressed) and "edit 1 applied at line 2" in event.text:
            made.set()

    result, left, _ = await revised(CODE.encode(), slow, listeners=[hear])  # type: ignore[arg-type]
    assert result.ok, result.text
    assert left.count(b"0\n") == 2


async def test_a_place_is_told_while_the_new_text_is_still_to_come():
    told: list[str] = []
    script = Script(["<old_1>\n    return 2\n</old_1>\n<new_1>\nx"], 5)
    await revised(CODE.encode(), script, listeners=[lambda event: told.append(getattr(event, "text", ""))])
    assert "a.py: edit 1 goes to line 6\n" in told


async def test_all_edits_are_one_change_and_undone_in_one_step():
    script = Script([e("return 1", "return 10") + e("return 2", "return 20") + DONE])
    result, _, box = await revised(CODE.encode(), script)
    assert len(result.changes.touched) == 1
    assert result.details.edits == 2
    assert (await box.call("undo", {"scope": "path", "name": "a.py"})).ok
    assert box.workspace.files.files["a.py"] == CODE.encode()


async def test_a_cancelled_call_writes_nothing_and_lets_go_of_the_model():
    cancel, closed = CancelToken(), []

    async def endless(question: str) -> AsyncIterator[str]:
        try:
            yield e("return 1", "return 10")
            cancel.cancel()
            await anyio.sleep_forever()
        finally:
            closed.append(True)

    box = memory_toolbox({"a.py": CODE.encode()}, tools=[edit_agent], callbacks=Callbacks(model=endless))
    call = Call(tool="edit_agent", args={"path": "a.py", "instructions": "Do it."})
    result = await box.call(call, cancel=cancel)
    assert result.status == "cancelled"
    assert closed
    assert box.workspace.files.files["a.py"] == CODE.encode()


async def test_a_model_that_fails_leaves_the_file_as_it_was():
    async def broken(question: str) -> AsyncIterator[str]:
        yield e("return 1", "return 10")
        raise ConnectionError("the line is dead")

    result, left, _ = await revised(CODE.encode(), broken)  # type: ignore[arg-type]
    assert result.fault is not None
    assert result.fault.code == "callback_failed"
    assert "ConnectionError" in result.text
    # A client's error may quote its key.
    assert "the line is dead" not in result.text
    assert left == CODE.encode()


async def test_what_a_policy_forbids_is_not_written():
    policy = Policy(
        rules=(Rule("mine", "deny", "It is mine.", paths=("a.py",), effects=frozenset({"change"})),)
    )
    result, left, _ = await revised(
        CODE.encode(), Script([e("return 1", "return 10") + DONE]), policy=policy
    )
    assert result.status == "denied"
    assert left == CODE.encode()


@pytest.mark.parametrize(
    ("meanwhile", "after"),
    [
        (b"# mine\n" + CODE.encode(), b"# mine\n" + CODE.replace("return 1", "return 10").encode()),
        (CODE.replace("return 1", "return 5").encode(), None),
    ],
    ids=["elsewhere: both are kept", "in the same place: refused"],
)
async def test_what_a_person_writes_meanwhile_is_never_lost(meanwhile, after):
    async def model(question: str) -> AsyncIterator[str]:
        other = Call(
            tool="write", args={"path": "a.py", "content": meanwhile.decode(), "mode": "overwrite"}
        )
        assert (await box.call(other)).ok
        yield e("return 1", "return 10") + DONE

    box = memory_toolbox(
        {"a.py": CODE.encode()}, tools=[*CODING, edit_agent], callbacks=Callbacks(model=model)
    )
    result = await box.call("edit_agent", {"path": "a.py", "instructions": "Do it."})
    assert result.ok == (after is not None), result.text
    assert box.workspace.files.files["a.py"] == (after or meanwhile)


GIANT = "".join(f"def f{n}():\n    return {n}\n\n\n" for n in range(5_000))


async def test_of_a_giant_file_the_parts_that_are_meant_are_shown_and_edited():
    script = Script([e("def f4321():\n    return 4321", "def f4321():\n    return -1") + DONE], 50)
    result, left, _ = await revised(GIANT.encode(), script, "Let f4321 return -1.")
    assert result.ok, result.text
    assert left.decode() == GIANT.replace("    return 4321\n", "    return -1\n")
    assert "def f4321():\n    return 4321\n" in script.asked[0]
    assert len(script.asked[0]) < len(GIANT) / 5


async def test_a_model_can_ask_for_other_lines_of_a_giant_file():
    show = '<show_1 lines="12001-12004"/>'
    script = Script([show, e("    return 3000", "    return 0") + DONE])
    result, left, _ = await revised(GIANT.encode(), script, "Find the one in the middle.")
    assert result.ok, result.text
    assert "def f3000():\n    return 3000\n" not in script.asked[0]
    assert "def f3000():\n    return 3000\n" in script.asked[1]
    assert left.decode() == GIANT.replace("    return 3000\n", "    return 0\n")


async def test_lines_that_are_not_there_end_with_a_refusal():
    script = Script(['<show_1 lines="900000-999999"/>'])
    result, left, _ = await revised(GIANT.encode(), script, "Look.")
    assert result.fault is not None
    assert len(script.asked) == MAX_EDIT_AGENT_ROUNDS
    assert left == GIANT.encode()


async def test_a_hallucinated_text_in_a_giant_file_is_refused():
    script = Script([e("def f9999():\n    return 9999", "x") + DONE])
    result, left, _ = await revised(GIANT.encode(), script, "Change f9999.")
    assert result.fault is not None
    assert left == GIANT.encode()


async def test_without_a_model_it_is_not_offered():
    box = memory_toolbox({}, tools=[*CODING, edit_agent])
    assert "edit_agent" not in [offered.name for offered in box.definitions()]


async def written(files, mode, script, path="new/a.py"):
    box = memory_toolbox(files, tools=[*CODING, edit_agent], callbacks=Callbacks(model=script))
    args = {"path": path, "instructions": "Write it.", "mode": mode}
    return await box.call("edit_agent", args), box


async def test_a_file_is_made_where_there_is_none_and_one_undo_takes_it_back():
    script = Script([e("", "x = 1\n") + DONE])
    done, box = await written({}, "create", script)
    assert (done.details.created, box.workspace.files.files["new/a.py"]) == (True, b"x = 1\n")
    assert "The file is empty" in script.asked[0]
    await box.call("undo", {"name": "new/a.py"})
    assert box.workspace.files.facts("new") is None


async def test_a_file_is_written_anew_in_its_own_encoding():
    before = "old = 'é'\r\n".encode("utf-16")
    done, box = await written({"a.py": before}, "overwrite", Script([e("", "x = 'ü'\n") + DONE]), "a.py")
    assert done.ok, done.text
    assert not done.details.created
    assert "old" not in box.workspace.files.files["a.py"].decode("utf-16")
    assert "ü" in box.workspace.files.files["a.py"].decode("utf-16")


@pytest.mark.parametrize(
    ("files", "mode", "code"),
    [
        ({"new/a.py": b"x"}, "create", "already_exists"),
        ({}, "edit", "not_found"),
        ({}, "overwrite", "not_found"),
    ],
)
async def test_each_mode_is_strict_and_asks_no_model_in_vain(files, mode, code):
    script = Script([e("", "y\n") + DONE])
    refused, box = await written(files, mode, script)
    assert refused.fault.code == code
    assert (script.asked, box.workspace.files.files) == ([], files)


async def test_a_model_that_writes_nothing_makes_no_file():
    refused, box = await written({}, "create", Script([DONE]))
    assert refused.fault.code == "invalid_input"
    assert box.workspace.files.files == {}
