"""The stages around one launch: its changes captured, its network proxied, its sandbox applied. ADR 65."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from handtools.core.commands import ProgressListener
from handtools.host.sandbox.change_capture import Capture, CapturedChanges, CommandCapture
from handtools.host.sandbox.launch import Launch, PersistentRunner, Runner
from handtools.host.sandbox.network_proxy import egress_for
from handtools.host.sandbox.runners.runner_selection import confined_launch


@dataclass(slots=True)
class LaunchPipeline:
    """One command's; what it says is there once the command has ended."""

    capture: Capture
    runner: Runner
    name: str
    """The call's."""
    show: ProgressListener
    delta: CapturedChanges = field(default=CapturedChanges((), "none"))
    notes: tuple[str, ...] = ()
    _capturing: CommandCapture | None = None

    @contextmanager
    def carry(self, launch: Launch) -> Iterator[Launch]:
        """The launch as it is to be executed; afterwards, what it changed. Blocking: for a thread of its own."""
        in_place = isinstance(self.runner, PersistentRunner) and not self.runner.layered
        self._capturing = capturing = self.capture.begin(replace(launch, in_place=in_place), self.name)
        try:
            with (
                egress_for(capturing.launch, self.show) as egress,
                confined_launch(self.runner, egress.launch) as confined,
            ):
                yield confined
            self.delta = capturing.finish()
            self.notes = (*confined.notes, *egress.notes(), *self.delta.notes)
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Let go of what was captured; it has landed, or never will."""
        capturing, self._capturing = self._capturing, None
        if capturing is not None:
            capturing.discard()
