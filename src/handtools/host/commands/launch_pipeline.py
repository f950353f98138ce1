"""The stages around one command's launch: capture of its changes, network proxy, sandbox. ADR 65."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from handtools.core.commands import ProgressListener
from handtools.host.sandbox.change_capture import Capture, CapturedChanges, CommandCapture
from handtools.host.sandbox.launch import Launch, PersistentRunner, Runner
from handtools.host.sandbox.network_proxy import with_network_proxy
from handtools.host.sandbox.runners.runner_selection import confined_launch


@dataclass(slots=True)
class LaunchPipeline:
    """Wraps one command's launch in change capture, network proxy and sandbox.

    `delta` and `notes` are set at its end.
    """

    capture: Capture
    runner: Runner
    name: str
    """The id of the tool call."""
    show: ProgressListener
    delta: CapturedChanges = field(default=CapturedChanges((), "none"))
    notes: tuple[str, ...] = ()
    _capturing: CommandCapture | None = None

    @contextmanager
    def carry(self, launch: Launch) -> Iterator[Launch]:
        """Context manager: the launch, captured, proxied and confined; on exit `delta` and `notes` are set.

        It blocks, so run it in a thread.
        """
        in_place = isinstance(self.runner, PersistentRunner) and not self.runner.layered
        self._capturing = capturing = self.capture.begin(replace(launch, in_place=in_place), self.name)
        try:
            with (
                with_network_proxy(capturing.launch, self.show) as egress,
                confined_launch(self.runner, egress.launch) as confined,
            ):
                yield confined
            self.delta = capturing.finish()
            self.notes = (*confined.notes, *egress.notes(), *self.delta.notes)
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Delete the captured changes, after they were applied or rejected."""
        capturing, self._capturing = self._capturing, None
        if capturing is not None:
            capturing.discard()
