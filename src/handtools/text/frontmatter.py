"""Frontmatter: the YAML header of a Markdown file, parsed leniently in the subset that people commonly use.

Values that a strict parser would reject are read as they were probably meant, and reported as problems. Every
scalar is a string, including `true`. Supports plain, quoted and block scalars, lists, and maps one level
deep.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

FlatValue = str | list[str]
FrontmatterValue = FlatValue | dict[str, FlatValue]

MAX_FRONTMATTER_CHARS = 64_000
MAX_FRONTMATTER_LINES = 32_000
_FENCE = re.compile(r"---[ \t]*\Z")
_END = re.compile(r"(?:---|\.\.\.)[ \t]*\Z")
_KEY = re.compile(
    r"""(?P<key>"[^"]*"|'[^']*'|[^\s:#"'\[\]{}&*!|>%@`,-][^:]*+)[ \t]*+:(?:[ \t]+(?P<rest>.*))?\Z"""
)
_ITEM = re.compile(r"-(?:[ \t]+(?P<rest>.*))?\Z")
_BLOCK = re.compile(r"(?P<style>[|>])(?:(?P<chomp>[+-])|(?P<indent>[1-9])){0,2}(?:[ \t]+#.*)?\Z")
_SINGLE = re.compile(r"'(?P<text>(?:[^']|'')*)'(?P<rest>.*)\Z", re.DOTALL)
_DOUBLE = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)"(?P<rest>.*)\Z', re.DOTALL)
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPED = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r",
    "e": "\x1b", " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_COMMENT = re.compile(r"(?:\A|[ \t])#.*\Z")
_RESERVED = frozenset("&*!|>%@`")


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """The parsed frontmatter of a Markdown file: its fields, the text after it, and problems found."""

    fields: dict[str, FrontmatterValue] = field(default_factory=dict)
    body: str = ""
    problems: tuple[str, ...] = ()
    """Problems that a strict YAML parser would reject, each with its line."""


def parse_frontmatter(text: str) -> Frontmatter:
    """Split a Markdown file into frontmatter fields and body; a file without frontmatter is all body."""
    lines = text.removeprefix("\ufeff").splitlines()
    start = next((at for at, line in enumerate(lines) if line.strip()), 0)
    if not lines or not _FENCE.match(lines[start]):
        return Frontmatter(body=text, problems=("There is no frontmatter between `---` lines.",))
    within = range(start + 1, min(len(lines), start + 1 + MAX_FRONTMATTER_LINES))
    end = next((at for at in within if _END.match(lines[at])), None)
    if end is None:
        return Frontmatter(body=text, problems=("The frontmatter has no closing `---` line.",))
    problems = ["Line 1: the frontmatter does not begin on the first line."] if start else []
    rows = lines[start + 1 : end]
    if sum(map(len, rows)) > MAX_FRONTMATTER_CHARS:
        return Frontmatter(
            body=text, problems=(f"The frontmatter is over {MAX_FRONTMATTER_CHARS:,} characters.",)
        )
    reader = _FrontmatterReader(rows, start + 2, problems)
    fields = reader.parse_map(0, deep=False)
    return Frontmatter(fields, "\n".join(lines[end + 1 :]).strip("\n"), tuple(reader.problems))


@dataclass(slots=True)
class _FrontmatterReader:
    """Recursive-descent parser over the rows of a frontmatter block."""

    rows: list[str]
    first: int
    """The line number in the file of the first frontmatter row."""
    problems: list[str]
    at: int = 0

    def parse_map(self, indent: int, *, deep: bool) -> dict[str, FrontmatterValue]:
        """Parse the `key: value` entries at one indentation."""
        found: dict[str, FrontmatterValue] = {}
        while (row := self._peek_row()) is not None and _indent_width(row) >= indent:
            entry = _KEY.match(row.strip()) if _indent_width(row) == indent else None
            self.at += 1
            if entry is None:
                self._add_problem("is not a `key: value` entry")
                continue
            key = entry["key"].rstrip().strip("\"'")
            if key in found:
                self._add_problem(f"repeats the key `{key}`")
            found[key] = self._parse_value((entry["rest"] or "").strip(), indent, deep=deep)
        return found

    def _parse_value(self, rest: str, indent: int, *, deep: bool) -> FrontmatterValue:
        if not rest or rest.startswith("#"):
            return self._parse_value_below_key(indent, deep=deep)
        if rest.startswith("["):
            return self._parse_flow_list(rest, indent)
        if rest.startswith("{") and not deep:
            return self._parse_flow_map(rest, indent)
        return self._parse_scalar(rest, indent)

    def _parse_value_below_key(self, indent: int, *, deep: bool) -> FrontmatterValue:
        """Parse the value on the rows below a key: a list, a map, a string, or empty."""
        row = self._peek_row()
        if row is None or _indent_width(row) < indent:
            return ""
        if _ITEM.match(row.strip()):
            return self._parse_list(_indent_width(row))
        if _indent_width(row) == indent:
            return ""
        if not _KEY.match(row.strip()):
            self.at += 1
            return self._parse_scalar(row.strip(), indent)
        if deep:
            self._add_problem("is nested too deeply", row=self.at)
            self._take_deeper_rows(indent)
            return ""
        inner = self.parse_map(_indent_width(row), deep=True)
        return {key: value for key, value in inner.items() if not isinstance(value, dict)}

    def _parse_list(self, indent: int) -> list[str]:
        found = []
        while (row := self._peek_row()) is not None and _indent_width(row) == indent:
            item = _ITEM.match(row.strip())
            if item is None:
                break
            self.at += 1
            rest = (item["rest"] or "").strip()
            if _KEY.match(rest) or _ITEM.match(rest):
                self._add_problem("nests a list or a map in a list")
            if rest and not rest.startswith("#"):
                found.append(self._parse_scalar(rest, indent))
        return found

    def _parse_scalar(self, rest: str, indent: int) -> str:
        """Parse a scalar that begins with `rest` and may span several rows."""
        if (block := _BLOCK.match(rest)) is not None:
            return self._parse_block_scalar(block, indent)
        begun = self.at - 1
        rows = [rest, *self._take_deeper_rows(indent)]
        if rest[0] in "'\"":
            pattern = _SINGLE if rest[0] == "'" else _DOUBLE
            quoted = pattern.match("\n".join(row.strip() for row in rows))
            if quoted is not None and not _without_comment(quoted["rest"]):
                return self._unescaped_text(quoted["text"], rest[0], begun)
            self._add_problem("has an unclosed quote or text after the closing quote", row=begun)
            return _joined_plain_rows(rows).strip(rest[0])
        text = _joined_plain_rows(rows)
        if rest[0] in _RESERVED or rest[0] in "[{":
            self._add_problem(
                f"begins with `{rest[0]}`, which is special in YAML: quote the value", row=begun
            )
        elif ": " in text or text.endswith(":"):
            self._add_problem("has a colon in an unquoted value", row=begun)
        return text

    def _unescaped_text(self, text: str, mark: str, row: int) -> str:
        if mark == "'":
            return _joined_rows(text.split("\n")).replace("''", "'")
        # A backslash at the end of a row joins it to the next without a space.
        whole = _joined_rows(re.sub(r"(?<!\\)((?:\\\\)*)\\\n+", r"\1", text).split("\n"))

        def meant(escape: re.Match[str]) -> str:
            code = escape[1]
            if len(code) > 1:
                number = int(code[1:], 16)
                return chr(number) if number < 0x110000 else "\ufffd"
            if code not in _ESCAPED:
                self._add_problem(f"has `\\{code}`, which is not a YAML escape", row=row)
            return _ESCAPED.get(code, escape[0])

        # JSON escapes a character beyond U+FFFF as a surrogate pair; a lone surrogate is replaced.
        return _ESCAPE.sub(meant, whole).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def _parse_block_scalar(self, block: re.Match[str], indent: int) -> str:
        """Parse a literal (`|`) or folded (`>`) block scalar."""
        rows = self._take_deeper_rows(indent)
        depth = (
            indent + int(block["indent"])
            if block["indent"]
            else min(map(_indent_width, filter(str.strip, rows)), default=0)
        )
        cut = [row[depth:] if row.strip() else row[depth:].strip(" ") for row in rows]
        body = "\n".join(cut) if block["style"] == "|" else _joined_folded_rows(cut)
        kept = body.rstrip("\n")
        if block["chomp"] == "-":
            return kept
        empty = next((count for count, row in enumerate(reversed(cut)) if row), len(cut))
        return kept + "\n" * (bool(kept) + (empty if block["chomp"] == "+" else 0))

    def _parse_flow_list(self, rest: str, indent: int) -> str | list[str]:
        row = self.at - 1
        text = _joined_flow_rows([rest, *self._take_deeper_rows(indent)])
        if not text.endswith("]"):
            self._add_problem("begins with `[`, which starts a list in YAML: quote the value", row=row)
            return text
        items = [item.strip() for item in split_at_outer_commas(text[1:-1])]
        if any(set("[]{}") & set(item) for item in items if item[:1] not in "'\""):
            self._add_problem("has unquoted brackets or braces in a list", row=row)
        return [self._parse_flow_item(item, row) for item in items if item]

    def _parse_flow_map(self, rest: str, indent: int) -> FrontmatterValue:
        row = self.at - 1
        text = _joined_flow_rows([rest, *self._take_deeper_rows(indent)])
        if not text.endswith("}"):
            self._add_problem("begins with `{`, which starts a map in YAML: quote the value", row=row)
            return text
        pairs = (item.partition(":") for item in split_at_outer_commas(text[1:-1]) if item.strip())
        return {
            key.strip().strip("\"'"): self._parse_flow_item(value.strip(), row) for key, _, value in pairs
        }

    def _parse_flow_item(self, item: str, row: int) -> str:
        if item[:1] not in ("'", '"'):
            return item
        quoted = (_SINGLE if item[0] == "'" else _DOUBLE).match(item)
        return self._unescaped_text(quoted["text"], item[0], row) if quoted else item.strip(item[0])

    def _peek_row(self) -> str | None:
        """Return the next row that is neither blank nor a comment; None at the end."""
        while self.at < len(self.rows):
            row = self.rows[self.at]
            if row.strip() and not row.lstrip().startswith("#"):
                if "\t" in row[: len(row) - len(row.lstrip())]:
                    self._add_problem("is indented with tabs", row=self.at)
                    self.rows[self.at] = row.expandtabs(2)
                return self.rows[self.at]
            self.at += 1
        return None

    def _take_deeper_rows(self, indent: int) -> list[str]:
        """Take all following rows that are indented deeper than `indent`."""
        start = self.at
        while self.at < len(self.rows):
            row = self.rows[self.at]
            if row.strip() and _indent_width(row) <= indent:
                break
            self.at += 1
        return self.rows[start : self.at]

    def _add_problem(self, words: str, *, row: int | None = None) -> None:
        at = self.at - 1 if row is None else row
        self.problems.append(f"Line {self.first + at} {words}.")


def split_at_outer_commas(text: str) -> Iterator[str]:
    """Split at the commas outside quotes, brackets and braces."""
    depth, start = 0, 0
    for at, sign in _characters_outside_quotes(text):
        depth += (sign in "[{") - (sign in "]}" and depth > 0)
        if sign == "," and not depth:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _characters_outside_quotes(text: str) -> Iterator[tuple[int, str]]:
    """Yield the index and character of all text outside quotes; a quote inside a word is an apostrophe."""
    at, fresh = 0, True
    while at < len(text):
        quoted = _QUOTED.match(text, at) if fresh else None
        if quoted is not None:
            at, fresh = quoted.end(), False
            continue
        sign = text[at]
        yield at, sign
        at += 1
        fresh = sign in ",:[{\n" or (fresh and sign.isspace())


def _joined_flow_rows(rows: list[str]) -> str:
    """Join the rows of a list or map in brackets into one string, without comments."""
    text = "\n".join(row.strip() for row in rows)
    kept, start = "", 0
    for at, sign in _characters_outside_quotes(text):
        if sign == "#" and at >= start and text[at - 1 : at].isspace():
            kept += text[start:at]
            end = text.find("\n", at)
            start = len(text) if end < 0 else end
    return _joined_rows((kept + text[start:]).rstrip().split("\n"))


def _indent_width(row: str) -> int:
    return len(row) - len(row.lstrip(" "))


def _without_comment(row: str) -> str:
    return _COMMENT.sub("", row).strip()


def _joined_rows(rows: list[str]) -> str:
    """Join rows of a scalar: a line break becomes a space, and empty rows become line breaks."""
    first, *others = rows
    if not others:
        return first
    text, breaks = first.rstrip(), 0
    for row in others[:-1]:
        if not row.strip():
            breaks += 1
            continue
        text, breaks = text + ("\n" * breaks or " ") + row.strip(), 0
    return text + ("\n" * breaks or " ") + others[-1].lstrip()


def _joined_plain_rows(rows: list[str]) -> str:
    """Join rows of an unquoted scalar, without comments and empty rows at the end."""
    said = [_without_comment(row) for row in rows]
    while len(said) > 1 and not said[-1]:
        said.pop()
    return _joined_rows(said).strip()


def _joined_folded_rows(rows: list[str]) -> str:
    """Join rows of a `>` block: single line breaks become spaces, except around further indented rows."""
    text, breaks, before = "", 0, ""
    for row in rows:
        if not row:
            breaks += 1
            continue
        kept = row[0] in " \t" or before[:1] in (" ", "\t")
        if before:
            text += "\n" * (breaks + 1) if kept else "\n" * breaks or " "
        else:
            text += "\n" * breaks
        text, breaks, before = text + row, 0, row
    return text + "\n" * breaks
