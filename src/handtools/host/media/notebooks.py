"""Previews of Jupyter notebooks: cells in order, with their outputs."""

import base64
import binascii
import contextlib
import json
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import accumulate, chain
from typing import Any

from handtools.core.errors import TooLarge, WrongKind
from handtools.core.media import MediaPreview
from handtools.core.result import Image
from handtools.host.media import images
from handtools.text.lines import count_lines
from handtools.text.plurals import number_with_noun
from handtools.text.truncation import clip_text

CELL_OUTPUT_LINES = 60
CELL_OUTPUT_BYTES = 4_000
_PICTURES = ("image/png", "image/jpeg")


def preview(path: str, data: bytes) -> MediaPreview:
    """List a notebook's cells, numbered, with their outputs and images."""
    try:
        book = json.loads(data)
        cells = book["cells"] if "cells" in book else book["worksheets"][0]["cells"]
        language = book.get("metadata", {}).get("kernelspec", {}).get("language", "")
        parts = [_cell_text(number, cell, language) for number, cell in enumerate(cells, 1)]
        pictures = [list(_cell_images(cell)) for cell in cells]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        why = (
            f"it is not valid JSON ({error})"
            if isinstance(error, ValueError)
            else "its cells have an unexpected structure"
        )
        hint = "Read it with view=text."
        raise WrongKind(f"Can't read `{path}` as a notebook: {why}.", hint=hint) from error
    ends = list(accumulate(count_lines(f"{part}\n") for part in parts))
    return MediaPreview(
        kind="notebook",
        title=f"notebook, {number_with_noun(len(cells), 'cell')}",
        text="\n".join(parts),
        images=tuple(chain(*pictures)),
        image_lines=tuple(end for end, shown in zip(ends, pictures, strict=True) for _ in shown),
    )


def _cell_text(number: int, cell: dict[str, Any], language: str) -> str:
    kind = cell.get("cell_type", "cell")
    turn = cell.get("execution_count")
    run = f" [{turn}]" if turn else ""
    rows = [f"--- cell {number}: {kind}{run}{f' ({language})' if kind == 'code' and language else ''} ---"]
    rows.append(_joined_lines(cell.get("source", cell.get("input", ""))))
    outputs = [text for output in cell.get("outputs", ()) for text in _output_texts(output)]
    if outputs:
        clipped = clip_text(
            "\n".join(outputs), max_lines=CELL_OUTPUT_LINES, max_bytes=CELL_OUTPUT_BYTES, keep="both"
        )
        rows += ["--- output ---", clipped.text.rstrip("\n")]
    return "\n".join(rows)


def _output_texts(output: dict[str, Any]) -> Iterator[str]:
    if "ename" in output:
        yield f"{output['ename']}: {output.get('evalue', '')}"
    elif "text" in output:
        yield _joined_lines(output["text"])
    else:
        shown = output.get("data", {})
        if "text/plain" in shown:
            yield _joined_lines(shown["text/plain"])
        yield from (f"({kind} picture)" for kind in _PICTURES if kind in shown)


def _cell_images(cell: dict[str, Any]) -> Iterator[Image]:
    for output in cell.get("outputs", ()):
        for kind in _PICTURES:
            if encoded := output.get("data", {}).get(kind):
                # Skip an invalid image: models would reject the whole result because of it.
                with contextlib.suppress(binascii.Error, ValueError, WrongKind, TooLarge):
                    yield from _preview_images(base64.b64decode(_joined_lines(encoded)), kind)


def _preview_images(data: bytes, kind: str) -> tuple[Image, ...]:
    if find_spec("PIL") is None:
        return (Image(data, kind),)
    return images.preview(kind, data).images


def _joined_lines(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)
