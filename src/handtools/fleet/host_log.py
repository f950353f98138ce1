"""The last lines that a host's process has logged, kept in memory for whoever operates the fleet."""

import logging
from collections import deque

MOST_LOG_LINES = 2000


class _RecentLines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=MOST_LOG_LINES)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


_recent = _RecentLines()


def keep_log_lines() -> None:
    """Keep what `handtools` logs in this process from now on."""
    logger = logging.getLogger("handtools")
    if _recent not in logger.handlers:
        logger.addHandler(_recent)


def recent_log_lines(limit: int) -> list[str]:
    """The last lines, the oldest first."""
    return list(_recent.lines)[-max(0, limit) :] if limit > 0 else []
