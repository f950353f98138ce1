"""The `Context` that a tool function receives: the ports for files, search, commands, web etc."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from handtools.core.call import Call
from handtools.core.callbacks import Callbacks
from handtools.core.commands import Commands
from handtools.core.files import Files
from handtools.core.language import Language
from handtools.core.media import Media
from handtools.core.search import Search
from handtools.core.skills import Skills
from handtools.core.syntax import Syntax
from handtools.core.undo_history import History
from handtools.core.web import Web

ProgressCallback = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Everything that a tool can use during one call.

    All ports enforce policy, approval, locks and journal.
    """

    call: Call
    files: Files
    commands: Commands
    history: History
    search: Search
    syntax: Syntax
    media: Media
    language: Language
    skills: Skills
    web: Web
    callbacks: Callbacks
    progress: ProgressCallback
    clock: Callable[[], datetime]
