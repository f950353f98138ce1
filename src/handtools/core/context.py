"""The `Context` that a tool function receives: the ports for files, search, commands, web etc."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from handtools.core.call import Call
    from handtools.core.callbacks import Callbacks
    from handtools.core.commands import Commands
    from handtools.core.files import Files
    from handtools.core.language import Language
    from handtools.core.media import Media
    from handtools.core.search import Search
    from handtools.core.skills import Skills
    from handtools.core.syntax import Syntax
    from handtools.core.undo import History
    from handtools.core.web import Web

ProgressCallback = Callable[[str], None]


class Context(Protocol):
    """Everything that a tool can use during one call.

    All ports enforce policy, approval, locks and journal.
    """

    @property
    def call(self) -> "Call":
        """The call that is running: its tool, arguments, session and id."""
        ...

    @property
    def files(self) -> "Files":
        """Read and change files of the workspace."""
        ...

    @property
    def commands(self) -> "Commands":
        """Run commands in the sandbox, also in the background."""
        ...

    @property
    def history(self) -> "History":
        """Undo and redo changes, and read earlier versions of files."""
        ...

    @property
    def search(self) -> "Search":
        """Search the contents and the names of files."""
        ...

    @property
    def syntax(self) -> "Syntax":
        """Parse source code, to outline or check it."""
        ...

    @property
    def media(self) -> "Media":
        """Read images, PDF files and other media."""
        ...

    @property
    def language(self) -> "Language":
        """Ask language servers."""
        ...

    @property
    def skills(self) -> "Skills":
        """List the skills that apply to a file or folder."""
        ...

    @property
    def web(self) -> "Web":
        """Fetch pages and search the web."""
        ...

    @property
    def callbacks(self) -> "Callbacks":
        """Functions that the application gave to the toolbox, such as the one that runs a subagent."""
        ...

    @property
    def clock(self) -> Callable[[], datetime]:
        """Return the current time."""
        ...

    def progress(self, text: str, /) -> None:
        """Show text to the user about how far the call is."""
        ...
