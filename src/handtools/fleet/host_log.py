"""The last log lines of a host's process, kept in memory for the fleet's operator."""

import logging
from collections import deque

MAX_LOG_LINES = 2000


class _RecentLines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=MAX_LOG_LINES)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


_recent = _RecentLines()


def start_recording_log_lines() -> None:
    """Start recording the lines of the `handtools` logger in this process."""
    logger = logging.getLogger("handtools")
    if _recent not in logger.handlers:
        logger.addHandler(_recent)


def recent_log_lines(limit: int) -> list[str]:
    """The last log lines, oldest first."""
    return list(_recent.lines)[-max(0, limit) :] if limit > 0 else []
