"""Jupyter notebooks, shown and edited: a notebook or a refusal; an edit changes cells and nothing else."""

import json

from handtools.core.errors import ToolError
from handtools.host.media import notebooks
from handtools.tools.editing.edit_outcome import EditApplied
from handtools.tools.editing.notebook_cells import is_notebook, replace_in_cells
from tests.fuzz.drawn_values import DrawnValues, text_of

CELL = {"cell_type": "code", "execution_count": 1, "metadata": {}, "source": ["x = 1\n", "y"], "outputs": [
    {"output_type": "stream", "text": ["a\n"]}, {"ename": "E", "evalue": "v"},
    {"data": {"text/plain": "1", "image/png": "iVBORw0KGgo="}}]}  # fmt: skip
BOOK = {"cells": [CELL, {"cell_type": "markdown", "source": "# x = 1"}], "metadata": {"kernelspec": {"language": "py"}},
        "nbformat": 4}  # fmt: skip
SEEDS = [
    b"\x00x = 1\xffx = 2\xff" + json.dumps(BOOK, indent=1).encode() + b"\n",
    b"\x00y\xffz\xff" + json.dumps({"worksheets": [{"cells": [{"input": "y"}]}]}).encode(),
    b"\x01y\xffz\xff\x00\x04",
]
WORDS = [
    "cells", "source", "outputs", "cell_type", "code", "markdown", "execution_count", "data", "text/plain", "image/png",
    "text", "ename", "evalue", "metadata", "kernelspec", "language", "worksheets", "input", "x = 1", "y\n",
]  # fmt: skip
PARSERS = ["handtools.host.media.notebooks", "handtools.text"]
FOUND = {
    "deep arrays ended in RecursionError": b"\x00\xff\xff" + b"[" * 3000,
}


def fuzz(data):
    drawn = DrawnValues(data)
    made, old, new = drawn.below(2), drawn.text(), drawn.text()
    body = (
        json.dumps({"cells": [drawn.json(WORDS) for _ in range(4)]}, indent=1)
        if made
        else text_of(drawn.rest())
    )
    try:
        shown = notebooks.preview("a.ipynb", body.encode("utf-8", "surrogateescape"))
    except ToolError:
        pass
    else:
        assert isinstance(shown.text, str)
        assert len(shown.images) == len(shown.image_lines)
        shown.text.encode("utf-8", "surrogatepass")
    before = is_notebook(body)
    for every in (False, True):
        outcome = replace_in_cells(body, old, new, every=every)
        if before and isinstance(outcome, EditApplied):
            assert is_notebook(outcome.text)
            assert len(json.loads(outcome.text)["cells"]) >= 0
