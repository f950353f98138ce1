"""The Telegram example: the real client library against a stub of the API on this machine."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from telegram import Bot

from handtools import Call, Callbacks
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.tools.attach import attach
from tests.e2e.telegram_stub import CHAT, PRESS, TOKEN, Stub, telegram_stub

EXAMPLE = Path(__file__).parents[2] / "examples" / "telegram" / "telegram_host.py"
FILES = {
    "photo": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "animation": b"GIF89a" + bytes(range(256)),
    "video": b"\0\0\0\x18ftypmp42\0\0\0\0" + bytes(range(256)),
    "audio": b"ID3\4\0\0" + bytes(range(256)),
    "document": b"%PDF-1.7\r\n" + bytes(range(256)),
}


@pytest.fixture
def stub():
    with telegram_stub() as running:
        yield running


@pytest.fixture
async def chat(stub):
    spec = importlib.util.spec_from_file_location("telegram_host", EXAMPLE)
    host = importlib.util.module_from_spec(spec)
    sys.modules["telegram_host"] = host
    spec.loader.exec_module(host)
    async with Bot(TOKEN, base_url=f"{stub.url}/bot", base_file_url=f"{stub.url}/file/bot") as bot:
        yield host.Chat(bot, CHAT)


def box(files, chat):
    return memory_toolbox(files, tools=[attach], callbacks=Callbacks(deliver=chat.deliver))


@pytest.mark.parametrize("kind", FILES)
async def test_each_kind_is_sent_by_its_own_method_with_every_byte(stub: Stub, chat, kind):
    args = {"paths": ["out/some.bin"], "title": "A title", "description": "And more."}
    result = await box({"out/some.bin": FILES[kind]}, chat).call("attach", args)
    assert result.ok, result.text
    sent = stub.sent[-1]
    assert sent.method == f"send{kind.capitalize()}"
    assert sent.fields["chat_id"] == str(CHAT)
    assert sent.fields["caption"] == "A title\nAnd more."
    ((name, data),) = sent.files.values()
    assert (name, data) == ("some.bin", FILES[kind])
    assert f"message {len(stub.sent)}" in result.details.attached[0].receipt


async def test_a_call_that_names_its_chat_is_answered_there(stub: Stub, chat):
    call = Call(tool="attach", args={"paths": ["a.mp3"]}, metadata={"chat_id": CHAT + 1})
    assert (await box({"a.mp3": FILES["audio"]}, chat).call(call)).ok
    assert stub.sent[-1].fields["chat_id"] == str(CHAT + 1)
    assert "caption" not in stub.sent[-1].fields


async def test_a_title_of_music_is_its_title_there_too(stub: Stub, chat):
    await box({"a.mp3": FILES["audio"]}, chat).call("attach", {"paths": ["a.mp3"], "title": "Song"})
    assert stub.sent[-1].fields["title"] == "Song"


async def test_what_telegram_would_not_show_is_sent_as_a_document(stub: Stub, chat):
    files = {"a.svg": b"<svg></svg>", "a.wav": b"RIFF\0\0\0\0WAVEfmt ", "a.zip": b"PK\5\6" + bytes(18)}
    large = FILES["photo"] + bytes(10 << 20)
    await box({**files, "large.png": large}, chat).call("attach", {"paths": [*files, "large.png"]})
    assert stub.methods() == ["sendDocument"] * 4
    assert len(next(iter(stub.sent[-1].files.values()))[1]) == len(large)


async def test_a_long_caption_is_cut_to_what_telegram_takes(stub: Stub, chat):
    words = {"title": "t" * 200, "description": "d" * 1_000}
    await box({"a": FILES["photo"]}, chat).call("attach", {"paths": ["a"], **words})
    assert len(stub.sent[-1].fields["caption"]) == 1024


async def test_a_refusal_of_telegrams_reaches_the_model(stub: Stub, chat):
    stub.refusing["sendPhoto"] = (400, "Bad Request: PHOTO_INVALID_DIMENSIONS")
    result = await box({"a.png": FILES["photo"]}, chat).call("attach", {"paths": ["a.png"]})
    assert result.fault.code == "callback_failed"
    assert "photo_invalid_dimensions" in result.text.lower()
    assert stub.methods() == ["sendPhoto"]


async def test_a_line_that_breaks_is_not_said_to_be_a_refusal(stub: Stub, chat):
    stub.refusing["sendPhoto"] = (0, "")
    result = await box({"a.png": FILES["photo"]}, chat).call("attach", {"paths": ["a.png"]})
    assert result.fault.code == "callback_failed"
    assert "it is unknown whether it was" in result.text


def run(stub: Stub, root: Path, tmp_path: Path) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {
        "TELEGRAM_TOKEN": TOKEN,
        "TELEGRAM_CHAT": str(CHAT),
        "TELEGRAM_API": stub.url,
        "HANDTOOLS_STATE": str(tmp_path / "state"),
    }
    command = [sys.executable, str(EXAMPLE), str(root)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_program_does_what_its_person_writes(stub: Stub, tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    (root / "chart.txt").write_bytes(FILES["photo"])
    (root / ".env").write_text("KEY=1")
    own = ["/send chart.txt The chart", "/send .env", "hello", "/stop"]
    stub.written = [(CHAT + 1, "/send chart.txt"), (CHAT + 1, "/stop"), *((CHAT, text) for text in own)]
    ended = run(stub, root, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert stub.methods() == ["sendPhoto", "sendMessage", "sendMessage", "sendMessage"]
    photo, *messages = (each for each in stub.sent if each.method.startswith("send"))
    assert photo.fields["caption"] == "The chart"
    assert "sent to the chat as a photo" in messages[0].fields["text"]
    assert "off limits" in messages[1].fields["text"]
    assert "/send PATH TITLE" in messages[2].fields["text"]


@pytest.mark.parametrize(("button", "written"), [("Allow", True), ("Deny", False)])
def test_a_question_of_another_process_is_answered_with_a_button(stub: Stub, tmp_path, button, written):
    root = tmp_path / "work"
    root.mkdir()
    asking = [
        Path(sys.executable).with_name("handtools"),
        "call",
        "write",
        "path=.envrc",
        "content=export A=1",
    ]
    environment = os.environ | {"HANDTOOLS_STATE": str(tmp_path / "state")}
    asked = subprocess.run(asking, cwd=root, env=environment, capture_output=True, timeout=120, check=False)
    assert asked.returncode == 3, asked.stderr
    stranger = (CHAT + 1, f"{PRESS}Allow")
    stub.written = [stranger, (CHAT, f"{PRESS}{button}"), (CHAT, f"{PRESS}Allow"), (CHAT, "/stop")]
    ended = run(stub, root, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert (root / ".envrc").exists() is written
    question = next(each for each in stub.sent if "reply_markup" in each.fields)
    assert ".envrc" in question.fields["text"]
    answers = [each.fields["text"] for each in stub.sent if each.method == "answerCallbackQuery"]
    assert answers == ["Allowed." if written else "Denied.", "That question is closed, or has changed."]
