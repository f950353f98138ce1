"""A Telegram chat as the person behind an agent: what `attach` delivers arrives there, each kind its own way."""

import asyncio
import os
import sys
from dataclasses import dataclass

from telegram import Bot, Message, Update
from telegram.error import NetworkError, TelegramError, TimedOut

from handtools import Callbacks, Toolbox, everything
from handtools.core.callbacks import Attachment
from handtools.core.errors import CallbackFailed

PHOTO_BYTES = 10 << 20
"""A larger picture can only be sent as a document."""
CAPTION_CHARS = 1024
PHOTOS = {"image/jpeg", "image/png", "image/webp"}
AUDIOS = {"audio/mpeg", "audio/mp4"}
UPLOAD_SECONDS = 120.0


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


async def serve(bot: Bot, chat_id: int, root: str) -> None:
    """Do what the person asks for. Put your agent where `_answer` is: it would call the tools itself."""
    chat = Chat(bot, chat_id)
    async with everything(root, callbacks=Callbacks(deliver=chat.deliver)) as toolbox:
        offset = 0
        while True:
            for update in await bot.get_updates(offset=offset, timeout=20):
                offset = update.update_id + 1
                words = _words(update, chat_id)
                if words == ["/stop"]:
                    await bot.get_updates(offset=offset, timeout=0)  # tells Telegram that this one was seen
                    return
                if words:
                    await bot.send_message(chat_id, await _answer(toolbox, words))


def _words(update: Update, chat_id: int) -> list[str]:
    """What the person wrote; what others write to the bot is nobody's order."""
    message = update.effective_message
    if message is None or message.chat_id != chat_id:
        return []
    return (message.text or "").split(maxsplit=2)


async def _answer(toolbox: Toolbox, words: list[str]) -> str:
    match words:
        case ["/send", path, *title]:
            return (await toolbox.call("attach", {"paths": [path], "title": " ".join(title)})).text
        case _:
            return "Write `/send PATH TITLE` to get a file, `/stop` to end."


async def main() -> None:
    """Run until the person writes `/stop`."""
    token, chat_id = os.environ["TELEGRAM_TOKEN"], int(os.environ["TELEGRAM_CHAT"])
    own = os.environ.get("TELEGRAM_API")  # a Bot API server of your own
    bot = Bot(token, base_url=f"{own}/bot", base_file_url=f"{own}/file/bot") if own else Bot(token)
    async with bot:
        await serve(bot, chat_id, sys.argv[1] if len(sys.argv) > 1 else ".")


if __name__ == "__main__":
    asyncio.run(main())
