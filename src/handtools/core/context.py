"""A context: everything a tool may reach, all of it, always."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from handtools.core.call import Call
from handtools.core.callbacks import Callbacks
from handtools.core.history import History
from handtools.core.language import Language
from handtools.core.ports import Commands, Files, Media, Progress, Search, Syntax
from handtools.core.skills import Skills
from handtools.core.web import Web


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One per call. A tool holds nothing else, so it can't skip policy, approval, locks or the journal."""

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
    progress: Progress
    clock: Callable[[], datetime]
