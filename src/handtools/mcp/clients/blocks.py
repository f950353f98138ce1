"""TOML tables and YAML mappings that are ours as a whole: added and taken out as blocks of lines."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any


def put_table(text: str, path: Sequence[str], value: Mapping[str, Any]) -> str:
    """The TOML text with our table at its end, in place of an earlier one."""
    kept = drop_table(text, path)
    gap = "" if not kept else "\n" if kept.endswith("\n") else "\n\n"
    # JSON's strings, lists and booleans are TOML's, too.
    lines = [f"[{'.'.join(path)}]", *(f"{key} = {json.dumps(item)}" for key, item in value.items())]
    return kept + gap + "\n".join(lines) + "\n"


def drop_table(text: str, path: Sequence[str]) -> str:
    """The TOML text without our table and the tables below it."""
    name = re.escape(".".join(path))
    block = re.compile(rf"(?:^|\n)\n?\[{name}(?:\.[^\]]*)?\][^\n]*\n(?:(?!\[)[^\n]*(?:\n|$))*")
    while found := block.search(text):
        before, after = text[: found.start()], text[found.end() :]
        text = (
            before
            + ("\n" if before and not before.endswith("\n") else "")
            + ("\n" if before and after else "")
            + after
        )
    return text


def put_mapping(text: str, section: str, name: str, value: Mapping[str, Any]) -> str:
    """The YAML text with our mapping first in its section."""
    kept = drop_mapping(text, section, name)
    lines = [f"  {name}:", *(f"    {key}: {json.dumps(item)}" for key, item in value.items())]
    block = "\n".join(lines) + "\n"
    head = re.search(rf"^{re.escape(section)}:[ \t]*(?:\{{\}})?[ \t]*\n", kept, re.MULTILINE)
    if head is None:
        gap = "" if not kept or kept.endswith("\n") else "\n"
        return f"{kept}{gap}{section}:\n{block}"
    return f"{kept[: head.start()]}{section}:\n{block}{kept[head.end() :]}"


def drop_mapping(text: str, section: str, name: str) -> str:
    """The YAML text without our mapping; the section goes with it when nothing else is in it."""
    above = rf"(^{re.escape(section)}:[ \t]*\n(?:[ \t]+[^\n]*\n|\n)*?)"
    ours = re.compile(rf"{above}  {re.escape(name)}:[ \t]*\n(?:   [^\n]*(?:\n|$))*", re.MULTILINE)
    found = ours.search(text)
    if found is None:
        return text
    head, rest = found[1], text[found.end() :]
    alone = head.strip() == f"{section}:" and not rest.startswith((" ", "\t"))
    return text[: found.start()] + ("" if alone else head) + rest
