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


def command_exit_of(
    process_result: ProcessResult, name: str, cwd: str, notes: tuple[str, ...]
) -> CommandExit:
    """Build the `CommandExit` of a process result; `name` is the output file's name."""
    return CommandExit(
        code=process_result.code,
        signal=process_result.signal,
        ended=process_result.how,
        seconds=process_result.seconds,
        peak_bytes=process_result.peak_bytes,
        output=command_output_from_buffer(process_result.output, name),
        streams=tuple(_stream_output(each) for each in process_result.output_ends),
        cwd=cwd,
        notes=notes,
    )


def command_output_from_buffer(output_buffer: OutputBuffer, name: str) -> CommandOutput:
    """The output so far as a `CommandOutput`: beginning, end and totals."""
    head, tail = output_buffer.ends()
    return CommandOutput(
        head=head,
        tail=tail,
        bytes=output_buffer.bytes,
        lines=output_buffer.line_count,
        kept=name if output_buffer.has_output_file else "",
        dropped_bytes=output_buffer.dropped,
    )


def _stream_output(output_ends: OutputEnds) -> CommandOutput:
    head, tail = output_ends.ends()
    return CommandOutput(head=head, tail=tail, bytes=output_ends.bytes, lines=output_ends.line_count)


def exit_notes(process_result: ProcessResult, running: int = 0) -> tuple[str, ...]:
    """Notes for the model about how a command ended: limits, killed and surviving processes.

    `running` is the number of shell jobs it left running.
    """
    notes = []
    left = max(process_result.left, running)
    if left and process_result.how == "exited":
        many = "1 process was" if left == 1 else f"{left} processes were"
        notes.append(f"{many} still running and killed with it; use background=true for long-running ones.")
    if process_result.survivors:
        notes.append(
            f"{process_result.survivors} of its processes could not be killed: another user's, or stuck."
        )
    if process_result.over:
        notes.append(_EXCEEDED_NOTES[process_result.over])
    if process_result.starved:
        notes.append(
            "The kernel killed one of its processes (out of memory). Do less at once, or use fewer workers."
        )
    if process_result.output.fault:
        notes.append(f"The output could not be saved in full: {process_result.output.fault}.")
    return tuple(notes)
