"""Convert a process result to the port's `CommandExit` and `CommandOutput`, with notes for the model."""

from handtools.core.commands import CommandExit, CommandOutput
from handtools.host.sandbox.processes.output_buffer import OutputBuffer, OutputEnds
from handtools.host.sandbox.processes.running_process import ProcessResult

_EXCEEDED_NOTES = {
    "memory": "Killed: its processes exceeded the memory limit. Do less at once, or use fewer workers.",
    "bytes": "Killed: it wrote more to the workspace than allowed. Write less, or in several commands.",
    "files": "Killed: it created too many files in the workspace. Create fewer, or in several commands.",
    "scratch": "Killed: it wrote more to $HOME, /tmp or package caches than allowed. Delete what you don't "
    "need there.",
}


def command_exit_of(ended: ProcessResult, name: str, cwd: str, notes: tuple[str, ...]) -> CommandExit:
    """Build the `CommandExit` of a process result; `name` is the output file's name."""
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
    """The output so far as a `CommandOutput`: beginning, end and totals."""
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
    """Notes for the model about how a command ended: limits, killed and surviving processes.

    `running` is the number of shell jobs it left running.
    """
    notes = []
    left = max(ended.left, running)
    if left and ended.how == "exited":
        many = "1 process was" if left == 1 else f"{left} processes were"
        notes.append(f"{many} still running and killed with it; use background=true for long-running ones.")
    if ended.survivors:
        notes.append(f"{ended.survivors} of its processes could not be killed: another user's, or stuck.")
    if ended.over:
        notes.append(_EXCEEDED_NOTES[ended.over])
    if ended.starved:
        notes.append(
            "The kernel killed one of its processes (out of memory). Do less at once, or use fewer workers."
        )
    if ended.output.fault:
        notes.append(f"The output could not be saved in full: {ended.output.fault}.")
    return tuple(notes)
