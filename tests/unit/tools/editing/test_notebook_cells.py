"""Notebooks are edited by cell, as a reader sees them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.testing.memory_toolbox import memory_toolbox
from handtools.tools.editing.edit_outcome import EditApplied, EditRefused
from handtools.tools.editing.notebook_cells import is_notebook, replace_in_cells


def book(*sources: str, indent: int | None = 1, **more) -> str:
    cells = [
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [{"text": ["total = 1\n"]}],
            "source": source.splitlines(keepends=True),
        }
        for source in sources
    ]
    whole = {"cells": cells, "metadata": {"name": "café"}, "nbformat": 4, "nbformat_minor": 5} | more
    return json.dumps(whole, indent=indent, ensure_ascii=False) + "\n"


def sources(text: str) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"]]


@pytest.mark.parametrize("indent", [1, 2, 4, None])
def test_lines_of_a_cell_are_replaced_as_they_read(indent):
    body = book("import os\n", 'for x in y:\n    print("x")\n    total = 1\n', indent=indent)
    done = replace_in_cells(body, 'print("x")\n    total = 1\n', 'print("\\n")\n    total = 2')
    assert isinstance(done, EditApplied)
    assert sources(done.text) == ["import os\n", 'for x in y:\n    print("\\n")\n    total = 2']
    assert done.text.replace("total = 2", "").count("total = 1") == 2


def test_text_in_two_cells_is_refused_with_their_numbers():
    refused = replace_in_cells(book("a = 1\n", "b = 1\n", "a = 1\n"), "a = 1", "a = 2")
    assert isinstance(refused, EditRefused)
    assert "cells 1, 3" in refused.message
    done = replace_in_cells(book("a = 1\n", "b = 1\n", "a = 1\n"), "a = 1", "a = 2", every=True)
    assert isinstance(done, EditApplied)
    assert sources(done.text) == ["a = 2\n", "b = 1\n", "a = 2\n"]


def test_what_is_in_no_cell_may_be_changed_in_the_json_that_stays_one():
    body = book("a = 1\n")
    done = replace_in_cells(body, '"nbformat_minor": 5', '"nbformat_minor": 4')
    assert isinstance(done, EditApplied)
    assert is_notebook(done.text)
    assert isinstance(replace_in_cells(body, '"nbformat_minor": 5', "oops"), EditRefused)


words = st.text(st.sampled_from('ab"\\é\n\t {'), max_size=12)


@given(st.lists(words, min_size=1, max_size=5), words, st.sampled_from([1, 2, None]))
def test_only_the_cell_that_is_meant_changes(texts, new, indent):
    texts = [f"{text}\nmark_{number}_end\n" for number, text in enumerate(texts)]
    body = book(*texts, indent=indent)
    done = replace_in_cells(body, f"mark_{len(texts) - 1}_end", f"x{new}y")
    assert isinstance(done, EditApplied)
    last = texts[-1].replace(f"mark_{len(texts) - 1}_end", f"x{new}y")
    assert sources(done.text) == [*texts[:-1], last]
    assert json.loads(done.text) == json.loads(book(*texts[:-1], last, indent=indent))


async def test_a_line_of_a_notebook_is_not_written_into_its_json():
    body = book("a = 1\n", "b = 2\n").encode()
    box = memory_toolbox({"n.ipynb": body})
    edits = [{"insert_line": 3, "new_string": "c = 3"}]
    refused = await box.call("multi_edit", {"path": "n.ipynb", "edits": edits})
    assert refused.fault.code == "invalid_input"
    assert "is a notebook" in refused.text
    assert box.workspace.files.files["n.ipynb"] == body
    edited = await box.call(
        "edit", {"path": "n.ipynb", "old_string": "b = 2", "new_string": 'b = "2"\nc = 3'}
    )
    assert edited.ok, edited.text
    assert "cell 2" in edited.text
    assert sources(box.workspace.files.files["n.ipynb"].decode())[1] == 'b = "2"\nc = 3\n'


async def test_a_patch_that_would_break_a_notebook_is_refused():
    body = book("a = 1\n").encode()
    box = memory_toolbox({"n.ipynb": body})
    patch = (
        '*** Begin Patch\n*** Update File: n.ipynb\n@@\n- "nbformat": 4,\n+ "nbformat": 4\n*** End Patch'
    )
    refused = await box.call("patch", {"patch": patch})
    assert refused.fault.code == "invalid_input"
    assert "would no longer be a valid notebook" in refused.text
    assert box.workspace.files.files["n.ipynb"] == body
