"""Dialogs of `handtools watch`: answer an approval request, confirm an action, choose a session."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from handtools.cli.watch_screen.text_pane import PaneLine, TextPane, approval_lines, harmless_lines
from handtools.core.approval import RememberScope, Reply
from handtools.record.session_feed import PendingApproval
from handtools.text.visible_text import visible_line

NAME_CHARS = 60


class ApprovalDialog(ModalScreen[Reply | None]):
    """Shows one approval request and returns the user's reply; None to decide later."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "allow('once')", "Yes, once"),
        Binding("s", "allow('session')", "Yes, this session"),
        Binding("p", "allow('project')", "Yes, this project"),
        Binding("n", "deny", "No …"),
        Binding("escape", "later", "Later"),
    ]

    def __init__(self, pending: PendingApproval, others: int) -> None:
        super().__init__()
        self.pending = pending
        self.others = others

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog") as box:
            box.border_title = "A call needs your approval"
            box.border_subtitle = f"{self.others} more waiting" if self.others else ""
            yield TextPane(id="question")
            yield Static(self._sentence_about_running_process(), id="who-runs", markup=False)
            yield Input(placeholder="What should it do instead? (optional; Enter denies)", id="sentence")
        yield Footer(show_command_palette=False)

    def _sentence_about_running_process(self) -> str:
        if self.pending.is_awaited:
            return "The agent is waiting and continues after your answer."
        return "The agent is no longer waiting; if you approve, the call runs from here and is logged."

    def on_mount(self) -> None:
        self.query_one("#sentence").display = False
        pane = self.query_one("#question", TextPane)
        pane.show(approval_lines(self.pending.approval))
        pane.focus()

    def action_allow(self, remember: RememberScope) -> None:
        """Approve the call."""
        approval = self.pending.approval
        if remember != "once" and not approval.remembered:
            self.notify("This call can only be approved once.", severity="warning")
            return
        self.dismiss(Reply(allow=True, remember=remember, fingerprint=approval.fingerprint))

    def action_deny(self) -> None:
        """Ask for a message to the model, then deny the call."""
        line = self.query_one("#sentence", Input)
        line.display = True
        line.focus()

    def action_later(self) -> None:
        """Close the message input, or the dialog without a reply."""
        line = self.query_one("#sentence", Input)
        if line.display:
            line.display = False
            self.query_one("#question").focus()
        else:
            self.dismiss(None)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Deny the call with the message."""
        event.stop()
        fingerprint = self.pending.approval.fingerprint
        self.dismiss(Reply(allow=False, message=event.value.strip(), fingerprint=fingerprint))


class ConfirmDialog(ModalScreen[bool]):
    """Shows what an action would do, and returns whether to do it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "answer(True)", "Do it"),
        Binding("n,escape", "answer(False)", "Cancel"),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self.heading = title
        self.said = text

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog") as box:
            box.border_title = visible_line(self.heading, NAME_CHARS)
            yield TextPane(id="question")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        pane = self.query_one("#question", TextPane)
        pane.show([*harmless_lines(self.said), PaneLine(""), PaneLine("y: do it, n: cancel.", "dim")])
        pane.focus()

    def action_answer(self, answer: bool) -> None:
        """Close the dialog and return the choice."""
        self.dismiss(answer)


class SessionDialog(ModalScreen[str | None]):
    """Lets the user choose a session; returns its name, an empty string for all sessions, or None if cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel")]

    def __init__(self, sessions: list[str]) -> None:
        super().__init__()
        self.sessions = sessions

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog") as box:
            box.border_title = "Which session?"
            names = [visible_line(name, NAME_CHARS) or "(unnamed)" for name in self.sessions]
            yield OptionList(*(Option(name) for name in ("All sessions", *names)), markup=False)
        yield Footer(show_command_palette=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Close the dialog with the chosen name."""
        self.dismiss(["", *self.sessions][event.option_index])
