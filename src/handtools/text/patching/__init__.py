"""Patching: patches in any format, read into one form, applied where they say or refused, and turned around."""

from handtools.text.patching.applying import Misfit, Patched, apply
from handtools.text.patching.forms import FilePatch, Hunk, Malformed, Row
from handtools.text.patching.inverting import invert
from handtools.text.patching.parsing import parse
from handtools.text.patching.placing import MOST_DRIFT

__all__ = [
    "MOST_DRIFT",
    "FilePatch",
    "Hunk",
    "Malformed",
    "Misfit",
    "Patched",
    "Row",
    "apply",
    "invert",
    "parse",
]
