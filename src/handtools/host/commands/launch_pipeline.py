"""The stages around one command's launch: capture of its changes, network proxy, sandbox. ADR 65."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from handtools.core.call import Call
from handtools.core.commands import ProgressListener
from handtools.host.commands.session_scratch import OpenScratch, SessionScratch
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
    scratch: SessionScratch
    call: Call
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
        self._capturing = capturing = self.capture.begin(replace(launch, in_place=in_place), self.call.id)
        try:
            with (
                self._open_scratch(capturing.launch) as scratch,
                with_network_proxy(replace(capturing.launch, scratch=scratch.folders), self.show) as egress,
                confined_launch(self.runner, egress.launch) as confined,
            ):
                yield confined
            self.delta = capturing.finish()
            self.notes = (*confined.notes, *egress.notes(), *self.delta.notes, *scratch.notes)
        except BaseException:
            self.discard()
            raise

    def _open_scratch(self, launch: Launch) -> AbstractContextManager[OpenScratch]:
        if not self.runner.keeps_scratch:
            return nullcontext(OpenScratch(None))
        return self.scratch.opened(launch, self.call.session_key, self.call.owner, self.runner.name)

    def discard(self) -> None:
        """Delete the captured changes, after they were applied or rejected."""
        capturing, self._capturing = self._capturing, None
        if capturing is not None:
            capturing.discard()
