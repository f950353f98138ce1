"""Attach: files for the person, judged first and sent once."""

import pytest

from handtools.core.approval import Reply
from handtools.core.call import Call
from handtools.core.callbacks import Callbacks
from handtools.runtime.policy import Policy
from handtools.runtime.policy.rules import Rule
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.toolbox import Toolbox
from handtools.tools.attach import MAX_FILES, MAX_MB, attach

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
ASK = Policy(rules=(Rule("ask", "ask", "A test asks.", effects=frozenset({"deliver"}), paths=("b.txt",)),))


class Person:
    """Keeps what comes."""

    def __init__(self, failing=()):
        self.got = []
        self.failing = failing

    async def deliver(self, attachment):
        if attachment.name in self.failing:
            raise ConnectionError("the line is dead")
        self.got.append(attachment)
        return "in the chat"


def box(files, person=None, **options):
    callbacks = Callbacks(deliver=person.deliver) if person else None
    return memory_toolbox(files, tools=[attach], callbacks=callbacks, **options)


async def test_without_a_way_to_the_person_it_is_not_offered():
    assert (await box({"a.txt": b"x"}).call("attach", {"paths": ["a.txt"]})).fault.code == "unknown_tool"


@pytest.mark.claim("attach.deliver")
async def test_files_reach_the_person_with_their_words():
    person = Person()
    args = {"paths": ["out/a.txt", "b.txt"], "title": "Two", "description": "As you asked."}
    result = await box({"out/a.txt": b"one", "b.txt": b"two"}, person).call("attach", args)
    assert [(each.name, each.path, each.data) for each in person.got] == [
        ("a.txt", "out/a.txt", b"one"),
        ("b.txt", "b.txt", b"two"),
    ]
    assert {(each.title, each.description) for each in person.got} == {("Two", "As you asked.")}
    said = 'Delivered `out/a.txt` as "Two" (document, text/plain, 3 bytes): in the chat'
    assert result.text.startswith(said)
    assert [each.receipt for each in result.details.attached] == ["in the chat"] * 2


async def test_a_file_without_a_title_goes_by_its_name():
    person = Person()
    result = await box({"out/a.txt": b"one"}, person).call("attach", {"paths": ["out/a.txt"]})
    assert [each.title for each in person.got] == ["a.txt"]
    assert result.details.attached[0].title == "a.txt"
    assert result.text == "Delivered `out/a.txt` (document, text/plain, 3 bytes): in the chat"


async def test_one_toolbox_serves_several_chats():
    person = Person()
    toolbox = box({"a.txt": b"one"}, person)
    for chat in (7, 8):
        call = Call(tool="attach", args={"paths": ["a.txt"]}, session=f"s{chat}", metadata={"chat": chat})
        await toolbox.call(call)
        assert person.got[-1].call_id == call.id
    assert [(each.session, each.metadata) for each in person.got] == [
        ("s7", {"chat": 7}),
        ("s8", {"chat": 8}),
    ]


@pytest.mark.claim("attach.kind")
async def test_the_content_says_what_it_is_not_the_name():
    person = Person()
    await box({"a.txt": PNG, "b.png": b"just text"}, person).call("attach", {"paths": ["a.txt", "b.png"]})
    assert [(each.kind, each.media_type) for each in person.got] == [
        ("image", "image/png"),
        ("document", "text/plain"),
    ]


@pytest.mark.claim("attach.inline")
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image"),
        (b"\0\0\0\x18ftypmp42\0\0\0\0", "video"),
        (b"ID3\4\0\0", "audio"),
        (b"%PDF-1.7", "document"),
        (b"PK\3\4" + bytes(9), "other"),
    ],
)
async def test_a_chat_is_told_what_it_may_show_or_play_and_what_is_only_to_be_opened(data, kind):
    person = Person()
    result = await box({"a": data}, person).call("attach", {"paths": ["a"]})
    assert person.got[0].kind == kind
    assert f"({kind}, " in result.text


@pytest.mark.claim("attach.limits")
@pytest.mark.parametrize(
    ("files", "paths", "code"),
    [
        ({"a": bytes((MAX_MB << 20) + 1)}, ["a"], "too_large"),
        ({"a": b"x", "b": bytes(MAX_MB << 20)}, ["a", "b"], "too_large"),
        ({}, [f"{n}" for n in range(MAX_FILES + 1)], "invalid_input"),
        ({"a": b"x"}, ["a", "none"], "not_found"),
        ({"a": b"x", "f/b": b"y"}, ["a", "f"], "wrong_kind"),
        ({"a": b"x", "b": b""}, ["a", "b"], "invalid_input"),
        ({"a": b"x", ".env": b"KEY"}, ["a", ".env"], "denied"),
    ],
    ids=["too large", "too large together", "too many", "missing", "folder", "empty", "private"],
)
async def test_what_can_not_be_delivered_is_refused_before_anything_leaves(files, paths, code):
    person = Person()
    result = await box(files, person).call("attach", {"paths": paths})
    assert result.fault.code == code
    assert person.got == []


async def test_a_rule_about_delivering_is_heeded_where_reading_is_allowed():
    person = Person()
    deny = Rule("no-sending", "deny", "It stays here.", effects=frozenset({"deliver"}), paths=("*.txt",))
    result = await box({"a.txt": b"x"}, person, policy=Policy(rules=(deny,))).call(
        "attach", {"paths": ["a.txt"]}
    )
    assert result.status == "denied"
    assert "no-sending" in result.text
    assert person.got == []


async def test_a_person_who_is_asked_sees_what_would_leave():
    person, asked = Person(), []

    async def approve(approval):
        asked.append(approval)
        return Reply(allow=True)

    result = await box({"b.txt": b"two"}, person, policy=ASK, approver=approve).call(
        "attach", {"paths": ["b.txt"]}
    )
    assert result.ok
    assert asked[0].title == "attach wants to deliver b.txt"
    assert asked[0].preview == "b.txt (text/plain, 3 bytes)"


async def test_what_was_delivered_before_a_question_is_not_delivered_again_after_it():
    person = Person()
    toolbox = box({"a.txt": b"one", "b.txt": b"two"}, person, policy=ASK)
    call = Call(tool="attach", args={"paths": ["a.txt", "b.txt"]})
    assert (await toolbox.call(call)).status == "pending"
    assert (await toolbox.resume(call.id, Reply(allow=True))).ok
    assert [each.name for each in person.got] == ["a.txt", "b.txt"]


async def test_the_same_call_delivers_once_also_when_its_record_was_lost():
    person = Person()
    toolbox = box({"a.txt": b"one"}, person)
    call = Call(tool="attach", args={"paths": ["a.txt"]})
    first = await toolbox.call(call)
    assert await toolbox.call(call) == first
    with toolbox.workspace.journal.together() as connection:
        connection.execute("DELETE FROM calls")
    again = await Toolbox([attach], workspace=toolbox.workspace, callbacks=toolbox.callbacks).call(call)
    assert again.text == first.text
    assert len(person.got) == 1


async def test_a_delivery_that_was_cut_off_is_not_tried_again_unasked():
    person = Person(failing=["a.txt"])
    toolbox = box({"a.txt": b"one"}, person)
    call = Call(tool="attach", args={"paths": ["a.txt"]})
    await toolbox.call(call)
    with toolbox.workspace.journal.together() as connection:
        connection.execute("DELETE FROM calls")
    person.failing = ()
    again = await toolbox.call(call)
    assert again.fault.code == "callback_failed"
    assert "unknown" in again.text
    assert person.got == []


async def test_a_failure_says_what_arrived_and_what_did_not():
    person = Person(failing=["b.txt"])
    result = await box({"a.txt": b"1", "b.txt": b"2"}, person).call("attach", {"paths": ["a.txt", "b.txt"]})
    assert result.fault.code == "callback_failed"
    assert result.text.index("Delivered `a.txt`") < result.text.index("`b.txt` was not delivered")
    assert "ConnectionError: the line is dead" in result.text
    assert "Tell the user" in result.fault.hint


async def test_asking_what_would_happen_delivers_nothing():
    person = Person()
    decision = await box({"a.txt": b"1"}, person).why("attach", {"paths": ["a.txt"]})
    assert (decision.verdict, decision.rule) == ("allow", "default for deliver")
    assert person.got == []


async def test_it_is_not_among_the_tools_that_only_read():
    toolbox = box({"a.txt": b"1"}, Person(), policy=Policy(tools="read_only"))
    assert toolbox.definitions() == []


async def test_a_receipt_that_is_half_a_character_is_shown_and_the_file_counts_as_delivered():
    class Careless(Person):
        async def deliver(self, attachment):
            return f"{await super().deliver(attachment)} \ud83d"

    person = Careless()
    toolbox = box({"a.txt": b"one"}, person)
    call = Call(tool="attach", args={"paths": ["a.txt"]})
    result = await toolbox.call(call)
    assert result.ok
    assert result.details.attached[0].receipt == "in the chat \ufffd"
    with toolbox.workspace.journal.together() as connection:
        connection.execute("DELETE FROM calls")
    assert (await toolbox.call(call)).text == result.text
    assert len(person.got) == 1
