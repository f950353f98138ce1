"""Matching: find the text an edit means and replace it there, or refuse and say what to send."""

from handtools.text.matching.outcomes import Applied, Code, Hint, Place, Refused, Span, Tier, Window
from handtools.text.matching.refusing import render
from handtools.text.matching.replacing import replace

__all__ = ["Applied", "Code", "Hint", "Place", "Refused", "Span", "Tier", "Window", "render", "replace"]
