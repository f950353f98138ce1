"""Dialogs of `handtools watch`: a question to answer, something to confirm, a session to choose."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from handtools.cli.watch_screen.text_pane import PaneLine, TextPane, approval_lines, harmless_lines
from handtools.core.approval import RememberScope, Reply
from handtools.session_feed import PendingApproval
from handtools.text.visible_text import visible_line

NAME_CHARS = 60


class ApprovalDialog(ModalScreen[Reply | None]):
    """Shows one question and gives back the person's answer; None to decide later."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "allow('once')", "Yes, once"),
        Binding("s", "allow('session')", "Yes, this session"),
        Binding("p", "allow('project')", "Yes, this project"),
        Binding("n", "deny", "No …"),
        Binding("escape", "later", "Later"),
    ]

    def __init__(self, asked: PendingApproval, others: int) -> None:
        super().__init__()
        self.asked = asked
        self.others = others

    def compose(self) -> ComposeResult:
        """Lay out the question, the line for a sentence, and the keys."""
        with Vertical(id="dialog") as box:
            box.border_title = "A call waits for your answer"
            box.border_subtitle = f"{self.others} more wait" if self.others else ""
            yield TextPane(id="question")
            yield Static(self._who_runs(), id="who-runs", markup=False)
            yield Input(
                placeholder="What should it do instead? Enter says no; may stay empty", id="sentence"
            )
        yield Footer(show_command_palette=False)

    def _who_runs(self) -> str:
        if self.asked.is_awaited:
            return "The agent waits, and goes on with your answer."
        return "The agent has gone on; a yes runs the call from here, and the log has its result."

    def on_mount(self) -> None:
        """Show the question."""
        self.query_one("#sentence").display = False
        pane = self.query_one("#question", TextPane)
        pane.show(approval_lines(self.asked.approval))
        pane.focus()

    def action_allow(self, remember: RememberScope) -> None:
        """Say yes."""
        approval = self.asked.approval
        if remember != "once" and not approval.remembered:
            self.notify("This can't be remembered; say yes once.", severity="warning")
            return
        self.dismiss(Reply(allow=True, remember=remember, fingerprint=approval.fingerprint))

    def action_deny(self) -> None:
        """Ask for a sentence for the model, then say no."""
        line = self.query_one("#sentence", Input)
        line.display = True
        line.focus()

    def action_later(self) -> None:
        """Leave the sentence, or the question as it is."""
        line = self.query_one("#sentence", Input)
        if line.display:
            line.display = False
            self.query_one("#question").focus()
        else:
            self.dismiss(None)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Say no, with the sentence."""
        event.stop()
        fingerprint = self.asked.approval.fingerprint
        self.dismiss(Reply(allow=False, message=event.value.strip(), fingerprint=fingerprint))


class ConfirmDialog(ModalScreen[bool]):
    """Says what would be done, and gives back whether to do it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "answer(True)", "Do it"),
        Binding("n,escape", "answer(False)", "Leave it"),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self.heading = title
        self.said = text

    def compose(self) -> ComposeResult:
        """Lay out the text and the keys."""
        with Vertical(id="dialog") as box:
            box.border_title = visible_line(self.heading, NAME_CHARS)
            yield TextPane(id="question")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Show what would be done."""
        pane = self.query_one("#question", TextPane)
        pane.show(
            [*harmless_lines(self.said), PaneLine(""), PaneLine("y does it, n leaves all as it is.", "dim")]
        )
        pane.focus()

    def action_answer(self, answer: bool) -> None:
        """Give the answer back."""
        self.dismiss(answer)


class SessionDialog(ModalScreen[str | None]):
    """Lets the person choose a session; gives back its name, empty for all, None to leave it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Leave it")]

    def __init__(self, sessions: list[str]) -> None:
        super().__init__()
        self.sessions = sessions

    def compose(self) -> ComposeResult:
        """Lay out the list."""
        with Vertical(id="dialog") as box:
            box.border_title = "Which session?"
            names = [visible_line(name, NAME_CHARS) or "(unnamed)" for name in self.sessions]
            yield OptionList(*(Option(name) for name in ("All sessions", *names)), markup=False)
        yield Footer(show_command_palette=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Give the chosen name back."""
        self.dismiss(["", *self.sessions][event.option_index])
