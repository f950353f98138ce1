"""Matching: find the text an edit means and replace it there, or refuse and say what to send."""

from handtools.text.matching.outcomes import (
    AlreadyApplied,
    Applied,
    Code,
    Hint,
    Outcome,
    Place,
    Refused,
    Span,
    Tier,
    Window,
)
from handtools.text.matching.refusing import render
from handtools.text.matching.replacing import missing, replace

__all__ = [
    "AlreadyApplied",
    "Applied",
    "Code",
    "Hint",
    "Outcome",
    "Place",
    "Refused",
    "Span",
    "Tier",
    "Window",
    "missing",
    "render",
    "replace",
]
