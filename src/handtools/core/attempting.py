"""Calling code that is not ours where its failure must not become ours."""

from collections.abc import Callable


def attempt(action: Callable[[], object]) -> Exception | None:
    """Run it; give back what it raised."""
    try:
        action()
    except Exception as failure:  # noqa: BLE001 — one of three, listed in tests/shape: a listener's bug is not the call's
        return failure
    return None
