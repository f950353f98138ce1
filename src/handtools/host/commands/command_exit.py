"""Convert a process result to the port's `CommandExit` and `CommandOutput`, with notes for the model."""

from handtools.core.commands import CommandExit, CommandOutput
from handtools.host.sandbox.processes.output_buffer import OutputBuffer, OutputEnds
from handtools.host.sandbox.processes.running_process import ProcessResult

_EXCEEDED_NOTES = {
    "memory": "Its processes together used more memory than allowed, and were ended: do less at once, or give it "
    "fewer workers.",
    "bytes": "It wrote more to the workspace than allowed, and was ended: write less, or in parts.",
    "files": "It made more files in the workspace than allowed, and was ended: make fewer, or in parts.",
    "scratch": "It wrote more to $HOME, /tmp or package caches than allowed, and was ended: remove what is not "
    "needed there.",
}


def command_exit_of(ended: ProcessResult, name: str, cwd: str, notes: tuple[str, ...]) -> CommandExit:
    """The `CommandExit` of a process result, with its output's name, working directory and notes."""
    return CommandExit(
        code=ended.code,
        signal=ended.signal,
        ended=ended.how,
        seconds=ended.seconds,
        peak_bytes=ended.peak_bytes,
        output=command_output_from_buffer(ended.output, name),
        streams=tuple(_stream_output(each) for each in ended.streams),
        cwd=cwd,
        notes=notes,
    )


def command_output_from_buffer(collected: OutputBuffer, name: str) -> CommandOutput:
    """The `CommandOutput` of what was printed so far: beginning, end and totals."""
    head, tail = collected.ends()
    return CommandOutput(
        head=head,
        tail=tail,
        bytes=collected.bytes,
        lines=collected.line_count,
        kept=name if collected.has_output_file else "",
        dropped_bytes=collected.dropped,
    )


def _stream_output(collected: OutputEnds) -> CommandOutput:
    head, tail = collected.ends()
    return CommandOutput(head=head, tail=tail, bytes=collected.bytes, lines=collected.line_count)


def exit_notes(ended: ProcessResult, running: int = 0) -> tuple[str, ...]:
    """Notes for the model about an end (limits, killed or surviving processes).

    `running` counts shell jobs left.
    """
    notes = []
    left = max(ended.left, running)
    if left and ended.how == "exited":
        many = "1 process was" if left == 1 else f"{left} processes were"
        notes.append(f"{many} still running and ended with it; background=true keeps what is to go on.")
    if ended.survivors:
        notes.append(f"{ended.survivors} of its processes could not be ended: another user's, or stuck.")
    if ended.over:
        notes.append(_EXCEEDED_NOTES[ended.over])
    if ended.starved:
        notes.append(
            "The kernel ended a process of it for lack of memory: do less at once, or give it fewer workers."
        )
    if ended.output.fault:
        notes.append(f"The output could not be kept whole: {ended.output.fault}.")
    return tuple(notes)
