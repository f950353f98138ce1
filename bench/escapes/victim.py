"""A process of somebody else's: it has secrets in its environment, arguments and memory, and counts signals."""

import ctypes
import os
import signal
import sys
from pathlib import Path


def main() -> None:
    report, held = Path(sys.argv[1]), os.open(sys.argv[2], os.O_RDONLY)
    counter = ctypes.create_string_buffer(b"\0", 1)
    secret = bytearray(f"SECRET-MEMORY-{os.environ['VICTIM_MARK']}", "ascii")
    hits = 0

    def note(*_: object) -> None:
        nonlocal hits
        hits += 1
        report.write_text(f"{ctypes.addressof(counter)} {hits} {counter.raw[0]}\n")

    signal.signal(signal.SIGUSR1, note)
    # The scene asks with a signal of its own: it is no hit, but tells whether memory was written.
    signal.signal(
        signal.SIGUSR2,
        lambda *_: report.write_text(f"{ctypes.addressof(counter)} {hits} {counter.raw[0]}\n"),
    )
    report.write_text(f"{ctypes.addressof(counter)} {hits} {counter.raw[0]}\n")
    while secret and held >= 0:
        signal.pause()


if __name__ == "__main__":
    main()
