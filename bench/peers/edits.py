"""Edits that go wrong in practice: the bytes before, what a model sends, and the only bytes that are right after.

What a server leaves is *right*, *refused* (the file is as it was, where a change was meant) or *damaged* (any
other bytes). Where several outcomes serve the model, all are given; `None` is a file that stays as it was.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EditCase:
    """One file and one edit of it, sent `times` times in a row."""

    name: str
    before: bytes
    old: str
    new: str
    right: tuple[bytes | None, ...]
    times: int = 1


def edit_cases() -> Iterator[EditCase]:
    """All cases, by what they are about."""
    yield from _plain()
    yield from _places()
    yield from _line_ends()
    yield from _encodings()
    yield from _depths()
    yield from _literal_text()
    yield from _ends_of_files()


def _case(
    name: str, before: str | bytes, old: str, new: str, *right: str | bytes | None, times: int = 1
) -> EditCase:
    def encoded(text: str | bytes) -> bytes:
        return text if isinstance(text, bytes) else text.encode()

    return EditCase(
        name, encoded(before), old, new, tuple(None if r is None else encoded(r) for r in right), times
    )


def _plain() -> Iterator[EditCase]:
    yield _case("one line", "a = 1\nb = 2\nc = 3\n", "b = 2", "b = 20", "a = 1\nb = 20\nc = 3\n")
    yield _case(
        "a block",
        "def f():\n    x = 1\n    return x\n",
        "    x = 1\n    return x",
        "    return 1",
        "def f():\n    return 1\n",
    )
    yield _case("a line is deleted", "one\ntwo\nthree\n", "two\n", "", "one\nthree\n")
    yield _case("nothing like it is there", "one\ntwo\n", "def missing():\n    pass", "x", None)
    yield _case("old and new are the same", "one\ntwo\n", "two", "two", None)
    yield _case("an empty old text", "one\ntwo\n", "", "zero\n", None)
    yield _case("a piece of a word", "value = compute_all()\n", "compute", "count", "value = count_all()\n")
    text = "".join(f"line {number}: {'x' * 60}\n" for number in range(20_000))
    yield _case(
        "one line of 1.4 MB",
        text,
        "line 15000: x",
        "row 15000: x",
        text.replace("line 15000:", "row 15000:"),
    )
    long = "a," * 400_000
    yield _case("a file of one line", f"{long}needle,{long}\n", "needle", "pin", f"{long}pin,{long}\n")


def _places() -> Iterator[EditCase]:
    twice = "x = 1\n\ndef f():\n    x = 1\n"
    yield _case("two places", "a()\nb()\na()\n", "a()", "c()", None)
    yield _case("two places at two depths", twice, "x = 1", "x = 2", None)
    yield _case("two equal blocks", "if a:\n    go()\nif b:\n    go()\n", "    go()", "    stop()", None)
    near = "def area(w, h):\n    return w * h\n\ndef volume(w, h, d):\n    return w * h * d\n"
    yield _case(
        "a sibling with one other word",
        near,
        "def edge(w, h):\n    return w * h",
        "def edge(w, h):\n    return w + h",
        None,
    )
    yield _case(
        "a wrong number in the context",
        "timeout = 30\nretries = 3\n",
        "timeout = 31\nretries = 3",
        "timeout = 60\nretries = 3",
        None,
    )
    grows = "import os\n\nmain()\n"
    yield _case(
        "sent twice",
        grows,
        "import os\n",
        "import os\nimport re\n",
        "import os\nimport re\n\nmain()\n",
        times=2,
    )
    yield _case(
        "sent twice, a call wrapped", "run(job)\n", "run(job)", "log(run(job))", "log(run(job))\n", times=2
    )


def _line_ends() -> Iterator[EditCase]:
    yield _case("CRLF, one line", "a\r\nb\r\nc\r\n", "b", "B", "a\r\nB\r\nc\r\n")
    yield _case("CRLF, a block sent with LF", "a\r\nb\r\nc\r\n", "a\nb", "a\nx\nb", "a\r\nx\r\nb\r\nc\r\n")
    yield _case("CRLF, lines are added", "a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n")
    mixed = "a\r\nb\nc\r\nd\n"
    yield _case("both line ends in one file", mixed, "d", "D", "a\r\nb\nc\r\nD\n")
    yield _case("carriage returns alone", "a\rb\rc\r", "b", "B", "a\rB\rc\r")
    yield _case(
        "a form feed and U+2028 in lines", "a\x0cb\nc\u2028d\ne\n", "e", "E", "a\x0cb\nc\u2028d\nE\n"
    )
    yield _case(
        "CRLF inside a template",
        "t = '''\r\nx\r\n'''\r\n",
        "'''\nx\n'''",
        "'''\ny\n'''",
        "t = '''\r\ny\r\n'''\r\n",
    )


def _encodings() -> Iterator[EditCase]:
    for name, encoding, text in (
        ("Latin-1", "latin-1", "# Prix: 5 £, déjà payé\nrate = 1\n"),
        ("Windows-1252", "cp1252", "# “quoted” – € 5\nrate = 1\n"),
        ("Shift JIS", "shift_jis", "# 日本語のテキストです。これは設定です\nrate = 1\n"),
        ("UTF-8 with a mark", "utf-8-sig", "# déjà\nrate = 1\n"),
        ("UTF-16 with a mark", "utf-16", "# déjà\nrate = 1\n"),
    ):
        yield _case(
            name,
            text.encode(encoding),
            "rate = 1",
            "rate = 2",
            text.replace("= 1", "= 2").encode(encoding),
            None,
        )
    broken = b"ok = 1\nname = b'\xff\xfe\x80'\n"
    yield _case("bytes that are no text", broken, "ok = 1", "ok = 2", broken.replace(b"= 1", b"= 2"), None)
    yield _case("a binary file", b"\x00\x01head\x00\xff\x00tail", "head", "HEAD", None)
    yield _case("an emoji beside it", "x = '👩‍🚀'; y = 1\n", "y = 1", "y = 2", "x = '👩‍🚀'; y = 2\n")
    apart, joined = "cafe\u0301 = 1\n", "caf\u00e9 = 1"
    yield _case("an accent written in two signs", apart, joined, "tea = 1", "tea = 1\n", None)
    yield _case(
        "a typographic quote",
        "say(\u201chi\u201d)\n",
        'say("hi")',
        'say("ho")',
        'say("ho")\n',
        "say(\u201cho\u201d)\n",
        None,
    )
    yield _case(
        "a space that does not break", "a\u00a0= 1\nb = 2\n", "b = 2", "b = 3", "a\u00a0= 1\nb = 3\n"
    )


def _depths() -> Iterator[EditCase]:
    tabs = "def f():\n\tif x:\n\t\tgo()\n\treturn 1\n"
    yield _case(
        "tabs, sent as blanks",
        tabs,
        "    if x:\n        go()",
        "    if y:\n        go()",
        tabs.replace("x:", "y:"),
        None,
    )
    deep = "class A:\n    def f(self):\n        a = 1\n        return a\n"
    yield _case(
        "a block without its depth",
        deep,
        "a = 1\nreturn a",
        "a = 2\nreturn a",
        deep.replace("= 1", "= 2"),
        None,
    )
    yield _case(
        "a line added without its depth",
        deep,
        "def f(self):\n    a = 1",
        "def f(self):\n    b = 0\n    a = 1",
        deep.replace("        a = 1", "        b = 0\n        a = 1"),
        None,
    )
    spare = "x = 1   \ny = 2\t\nz = 3\n"
    yield _case(
        "blanks at the ends of lines",
        spare,
        "x = 1\ny = 2",
        "x = 1\ny = 5",
        "x = 1   \ny = 5\t\nz = 3\n",
        "x = 1   \ny = 5\nz = 3\n",
        "x = 1\ny = 5\nz = 3\n",
        None,
    )
    yaml = "a:\n  b:\n    - c: 1\n      d: 2\n"
    yield _case(
        "an item of YAML",
        yaml,
        "    - c: 1\n",
        "    - c: 1\n      e: 3\n",
        "a:\n  b:\n    - c: 1\n      e: 3\n      d: 2\n",
    )
    make = "all:\n\tcc a.c\n\nclean:\n\trm a\n"
    yield _case(
        "a recipe of make",
        make,
        "\tcc a.c\n",
        "\tcc a.c\n\tcc b.c\n",
        make.replace("a.c\n", "a.c\n\tcc b.c\n"),
    )


def _literal_text() -> Iterator[EditCase]:
    yield _case("dollar signs", "cost = x\n", "x", "'$& $1 $$ $`'", "cost = '$& $1 $$ $`'\n")
    yield _case("backslashes", "p = x\n", "x", "r'\\n\\1\\g<0>'", "p = r'\\n\\1\\g<0>'\n")
    yield _case(
        "signs of expressions", "m = re(a.*b[0-9]+?)\n", "a.*b[0-9]+?", "c(d)|e", "m = re(c(d)|e)\n"
    )
    yield _case(
        "JSON in a string", 's = "{\\"a\\": 1}"\n', '{\\"a\\": 1}', '{\\"a\\": 2}', 's = "{\\"a\\": 2}"\n'
    )
    yield _case(
        "three quotes",
        'def f():\n    """Say."""\n',
        '"""Say."""',
        '"""Say \'it\'."""',
        'def f():\n    """Say \'it\'."""\n',
    )
    yield _case("entities", "<p>a &amp; b</p>\n", "a &amp; b", "a &lt; b", "<p>a &lt; b</p>\n")


def _ends_of_files() -> Iterator[EditCase]:
    yield _case("no line end at the end", "a\nb", "b", "c", "a\nc")
    yield _case("lines added behind the last", "a\nb", "b", "b\nc", "a\nb\nc")
    yield _case(
        "the first line",
        "#!/bin/sh\nrun\n",
        "#!/bin/sh\n",
        "#!/bin/sh\nset -e\n",
        "#!/bin/sh\nset -e\nrun\n",
    )
    yield _case("blank lines at the end stay", "a\nb\n\n\n", "a", "c", "c\nb\n\n\n")
