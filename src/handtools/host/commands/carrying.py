"""Carrying: a launch with its changes captured, its way out open and its boundary around it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from handtools.core.command import Show
from handtools.host.commands.capturing import Capture, Capturing, Delta
from handtools.host.commands.launching import Keeping, Launch, Runner
from handtools.host.commands.network.egress import reaching
from handtools.host.commands.runners.choosing import confining


@dataclass(slots=True)
class Carrier:
    """One command's; what it says is there once the command has ended."""

    capture: Capture
    runner: Runner
    name: str
    """The call's."""
    show: Show
    delta: Delta = field(default=Delta((), "none"))
    notes: tuple[str, ...] = ()
    _capturing: Capturing | None = None

    @contextmanager
    def carry(self, launch: Launch) -> Iterator[Launch]:
        """The launch as it is to be executed; afterwards, what it changed. Blocking: for a thread of its own."""
        in_place = isinstance(self.runner, Keeping) and not self.runner.layered
        self._capturing = capturing = self.capture.begin(replace(launch, in_place=in_place), self.name)
        try:
            with (
                reaching(capturing.launch, self.show) as egress,
                confining(self.runner, egress.launch) as confined,
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
