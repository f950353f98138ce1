"""Patches in any format that models write: parsed, applied to a text or refused, and inverted.

Start with `patch_model`, the values that every format is parsed into.
"""

from handtools.text.patches.hunk_placement import MOST_HUNK_DRIFT, HunkMisfit, PatchedText, apply_hunks
from handtools.text.patches.patch_model import FilePatch, Hunk, HunkRow, MalformedPatch, invert_patch
from handtools.text.patches.patch_parser import parse_patch

__all__ = [
    "MOST_HUNK_DRIFT",
    "FilePatch",
    "Hunk",
    "HunkMisfit",
    "HunkRow",
    "MalformedPatch",
    "PatchedText",
    "apply_hunks",
    "invert_patch",
    "parse_patch",
]
