"""Patches in any format that models write: parsing, applying to a text or refusing, and inverting.

Start with `patch_model`, the data model for all formats.
"""

from handtools.text.patches.hunk_placement import MAX_HUNK_DRIFT, HunkMisfit, PatchedText, apply_hunks
from handtools.text.patches.patch_model import FilePatch, Hunk, HunkRow, MalformedPatch, invert_patch
from handtools.text.patches.patch_parser import parse_patch

__all__ = [
    "MAX_HUNK_DRIFT",
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
