"""A Telegram chat as the person behind an agent: files arrive there, and questions are answered there."""

import asyncio
import os
import sys
from dataclasses import dataclass, field

from telegram import Bot, CallbackQuery, InlineKeyboardButton, InlineKeyboardMarkup, Message, Update
from telegram.error import NetworkError, TelegramError, TimedOut

from handtools import Call, Callbacks, Reply, Toolbox, everything
from handtools.core.approval import Approval
from handtools.core.callbacks import Attachment
from handtools.core.errors import CallbackFailed

PHOTO_BYTES = 10 << 20
"""A larger picture can only be sent as a document."""
CAPTION_CHARS = 1024
PHOTOS = {"image/jpeg", "image/png", "image/webp"}
AUDIOS = {"audio/mpeg", "audio/mp4"}
UPLOAD_SECONDS = 120.0
MESSAGE_CHARS = 4096
QUESTION_SECONDS = 5
"""How long a new question waits at most until it is sent."""


@dataclass(frozen=True)
class Chat:
    """The chats of a bot: the call's own where it names one, else this one."""

    bot: Bot
    chat_id: int

    async def deliver(self, attachment: Attachment) -> str:
        """Send a file the way its kind is shown best; the answer tells the model how it arrived."""
        try:
            how, message = await self._send(attachment)
        except TelegramError as refusal:
            if type(refusal) in {NetworkError, TimedOut}:
                raise  # no answer came: whether the file did, the tool says, nobody can tell
            hint = "Tell the person in words what it would have been."
            raise CallbackFailed(
                f"Telegram did not take `{attachment.path}`: {refusal}.", hint=hint
            ) from refusal
        return f"sent to the chat as {how}, message {message.message_id}"

    async def _send(self, attachment: Attachment) -> tuple[str, Message]:
        options = {
            "chat_id": attachment.metadata.get("chat_id", self.chat_id),
            "caption": _caption(attachment),
            "filename": attachment.name,
            "write_timeout": UPLOAD_SECONDS,
            "read_timeout": UPLOAD_SECONDS,
        }
        match _method(attachment):
            case "animation":
                return "an animation", await self.bot.send_animation(animation=attachment.data, **options)
            case "photo":
                return "a photo", await self.bot.send_photo(photo=attachment.data, **options)
            case "video":
                return "a video", await self.bot.send_video(video=attachment.data, **options)
            case "audio":
                title = attachment.title or None
                return "audio", await self.bot.send_audio(audio=attachment.data, title=title, **options)
            case _:
                return "a document", await self.bot.send_document(document=attachment.data, **options)


def _method(attachment: Attachment) -> str:
    """What Telegram's clients play or show themselves; anything else is a document."""
    kind = attachment.media_type
    if kind == "image/gif":
        return "animation"
    if kind in PHOTOS and len(attachment.data) <= PHOTO_BYTES:
        return "photo"
    if kind == "video/mp4":
        return "video"
    return "audio" if kind in AUDIOS else "document"


def _caption(attachment: Attachment) -> str | None:
    title = "" if attachment.title == attachment.name else attachment.title  # the name is shown anyway
    text = "\n".join(filter(None, (title, attachment.description)))
    return text[: CAPTION_CHARS - 1] + "…" if len(text) > CAPTION_CHARS else text or None


@dataclass(frozen=True)
class Questions:
    """Calls that wait for an answer, of every agent in the workspace, asked in the chat with two buttons."""

    chat: Chat
    toolbox: Toolbox
    told: set[str] = field(default_factory=set)

    async def ask_new(self) -> None:
        """Send each question that was not sent yet."""
        for approval in await self.toolbox.waiting():
            if approval.fingerprint not in self.told:
                self.told.add(approval.fingerprint)
                await self.chat.bot.send_message(
                    self.chat.chat_id, _question(approval), reply_markup=_buttons(approval)
                )

    async def answer(self, query: CallbackQuery) -> None:
        """Answer the question that a button belongs to, if it still waits as it was shown."""
        verb, _, shown = (query.data or "").partition(" ")
        waiting = await self.toolbox.waiting()
        approval = next((each for each in waiting if shown and each.fingerprint.startswith(shown)), None)
        if approval is None:
            await query.answer("That question is closed, or has changed.")
            return
        reply = Reply(allow=verb == "allow", fingerprint=approval.fingerprint)
        result = await self.toolbox.resume(approval.call_id, reply)
        await query.answer("Allowed." if reply.allow else "Denied.")
        await self.chat.bot.send_message(self.chat.chat_id, result.text[:MESSAGE_CHARS])


def _question(approval: Approval) -> str:
    shown = approval.excerpt(max_lines=40, max_bytes=3_000)
    return f"{approval.title}\n{approval.rule}\n\n{shown}"[:MESSAGE_CHARS]


def _buttons(approval: Approval) -> InlineKeyboardMarkup:
    """What a button sends has at most 64 bytes; the fingerprint is of exactly what was shown."""
    mark = approval.fingerprint[:32]
    row = [InlineKeyboardButton(verb.title(), callback_data=f"{verb} {mark}") for verb in ("allow", "deny")]
    return InlineKeyboardMarkup([row])


async def serve(bot: Bot, chat_id: int, root: str) -> None:
    """Do what the person asks for. Put your agent where `_answer` is: it would call the tools itself."""
    chat = Chat(bot, chat_id)
    async with everything(root, callbacks=Callbacks(deliver=chat.deliver)) as toolbox:
        questions, offset = Questions(chat, toolbox), 0
        while True:
            await questions.ask_new()
            for update in await bot.get_updates(offset=offset, timeout=QUESTION_SECONDS):
                offset = update.update_id + 1
                query = update.callback_query
                if query is not None and query.message is not None and query.message.chat.id == chat_id:
                    await questions.answer(query)
                words = _words(update, chat_id)
                if words == ["/stop"]:
                    await bot.get_updates(offset=offset, timeout=0)  # tells Telegram that this one was seen
                    return
                if words:
                    await bot.send_message(chat_id, (await _answer(toolbox, words))[:MESSAGE_CHARS])


def _words(update: Update, chat_id: int) -> list[str]:
    """What the person wrote; what others write to the bot is nobody's order."""
    message = update.message  # what a button belongs to is no new message
    if message is None or message.chat_id != chat_id:
        return []
    return (message.text or "").split(maxsplit=2)


async def _answer(toolbox: Toolbox, words: list[str]) -> str:
    match words:
        case ["/send", path, *title]:
            return (await toolbox.call("attach", {"paths": [path], "title": " ".join(title)})).text
        case ["/run", *script]:
            return (await toolbox.call(Call(tool="bash", args={"command": " ".join(script)}))).text
        case _:
            return "Write `/send PATH TITLE` to get a file, `/run COMMAND` to run one, `/stop` to end."


async def main() -> None:
    """Run until the person writes `/stop`."""
    token, chat_id = os.environ["TELEGRAM_TOKEN"], int(os.environ["TELEGRAM_CHAT"])
    own = os.environ.get("TELEGRAM_API")  # a Bot API server of your own
    bot = Bot(token, base_url=f"{own}/bot", base_file_url=f"{own}/file/bot") if own else Bot(token)
    async with bot:
        await serve(bot, chat_id, sys.argv[1] if len(sys.argv) > 1 else ".")


if __name__ == "__main__":
    asyncio.run(main())
