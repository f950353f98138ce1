"""Media: small files that grow when they are opened, or never end."""

import io
import json
import struct
import tarfile
import zipfile
import zlib

from bench.escapes.host.place import Place

_PDF = (
    b"%%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d %d]/Contents %s>>endobj\n"
    b"4 0 obj<</Length %d/Filter[/FlateDecode/FlateDecode]>>stream\n%s\nendstream endobj\ntrailer<</Root 1 0 R>>\n"
)


_BLOCK_BYTES = 1 << 24


def _deflated(size: int, byte: bytes = b" ") -> bytes:
    """So many equal bytes, packed; one block is packed, and then stands there again and again."""
    packer, block, check = zlib.compressobj(9), byte * _BLOCK_BYTES, 1
    first = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    blocks = size // _BLOCK_BYTES
    for _ in range(blocks):
        check = zlib.adler32(block, check)
    return first + again * (blocks - 1) + packer.flush()[:-4] + struct.pack(">I", check)


def _packed(size: int) -> bytes:
    """So many spaces, packed twice."""
    return zlib.compress(_deflated(size), 9)


def _pdf(stream: bytes, *, contents: bytes = b"4 0 R", side: int = 100) -> bytes:
    return _PDF % (side, side, contents, len(stream), stream)


def _png(width: int, height: int, data: bytes) -> bytes:
    def chunk(kind: bytes, held: bytes) -> bytes:
        return struct.pack(">I", len(held)) + kind + held + struct.pack(">I", zlib.crc32(kind + held))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", data) + chunk(b"IEND", b"")


async def page_of_spaces(place: Place) -> None:
    """A page of a PDF is a gigabyte of spaces, in two kilobytes."""
    place.put("a.pdf", _pdf(_packed(1 << 30)))
    await place.call("read", path="a.pdf")


async def page_drawn_often(place: Place) -> None:
    """A page of a PDF draws the same large content forty times, on a sheet of kilometres."""
    place.put("a.pdf", _pdf(_packed(256 << 20), contents=b"[" + b"4 0 R " * 40 + b"]", side=99_999_999))
    await place.call("read", path="a.pdf", view="image")
    await place.call("read", path="a.pdf", pages="1-")


async def pages_without_end(place: Place) -> None:
    """The tree of a PDF's pages holds itself, and counts two billion."""
    place.put(
        "a.pdf",
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        b"2 0 obj<</Type/Pages/Kids[2 0 R 2 0 R 2 0 R]/Count 2147483647>>endobj\ntrailer<</Root 1 0 R/Prev 0>>\n",
    )
    nested = b"[" * 200_000 + b"]" * 200_000
    place.put("b.pdf", b"%PDF-1.4\n1 0 obj" + nested + b"endobj\ntrailer<</Root 1 0 R>>\n")
    await place.each("read", "path", ["a.pdf", "b.pdf"])


async def picture_of_many_pixels(place: Place) -> None:
    """A PNG of a few kilobytes has 600 million pixels, another says that it has 2^62."""
    rows = zlib.compress((b"\0" + b"\0" * 3751) * 20_000)
    place.put("a.png", _png(30_000, 20_000, rows))
    place.put("b.png", _png((1 << 31) - 1, (1 << 31) - 1, zlib.compress(b"0" * 1000)))
    place.put(
        "c.gif",
        b"GIF89a" + struct.pack("<HH", 65535, 65535) + b"\0\0\0" + b"\x2c\0\0\0\0\xff\xff\xff\xff\0" * 5000,
    )
    for name in ("a.png", "b.png", "c.gif"):
        await place.call("read", path=name)
        await place.call("attach", paths=[name])


async def text_of_a_picture(place: Place) -> None:
    """A PNG has a compressed comment of a gigabyte, and an SVG entities that multiply or lead to files."""
    comment = _deflated(1 << 30, b"a")
    held = b"zTXt" + b"Comment\0\0" + comment
    chunk = struct.pack(">I", len(held) - 4) + held + struct.pack(">I", zlib.crc32(held))
    whole = _png(8, 8, zlib.compress(b"\0\0" * 8))
    place.put("a.png", whole[:33] + chunk + whole[33:])
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    place.put(
        "b.svg",
        f'<!DOCTYPE s [<!ENTITY e0 "x">{levels}<!ENTITY f SYSTEM "file://{place.outside}/secret.txt">]><svg>&e11;&f;</svg>',
    )
    for name in ("a.png", "b.svg"):
        await place.call("read", path=name)


async def archive_of_zeros(place: Place) -> None:
    """A zip holds a gigabyte of zeros, twice packed, and 60,000 names with escapes."""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr("zeros", b"\0" * (32 << 20))
    with zipfile.ZipFile(place.workspace / "a.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for number in range(40):
            file.writestr(f"{number}.zip", inner.getvalue())
    with zipfile.ZipFile(place.workspace / "b.zip", "w") as file:
        for number in range(60_000):
            file.writestr(f"f{number}\x1b[31m", "")
    await place.each("read", "path", ["a.zip", "b.zip"])


async def tape_that_unpacks(place: Place) -> None:
    """Packed tar archives, with links, long names and sizes that are not so."""
    with tarfile.open(place.workspace / "a.tar.gz", "w:gz", compresslevel=1) as file:
        member = tarfile.TarInfo("zeros")
        member.size = 1 << 26
        with open("/dev/zero", "rb") as zeros:
            file.addfile(member, zeros)
        link = tarfile.TarInfo("x" * 5000)
        link.type, link.linkname = tarfile.SYMTYPE, str(place.outside / "secret.txt")
        file.addfile(link)
    head = tarfile.TarInfo("large")
    head.size = 1 << 60
    place.put("b.tar", head.tobuf() + b"x" * 512)
    await place.each("read", "path", ["a.tar.gz", "b.tar"])


async def office_files(place: Place) -> None:
    """A workbook and a letter have entities that multiply, deep elements and parts of 32 megabytes."""
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    xml = f'<!DOCTYPE x [<!ENTITY e0 "x">{levels}]><workbook><sheets><sheet name="&e11;"/></sheets></workbook>'
    for name, part in (
        ("a.xlsx", "xl/workbook.xml"),
        ("a.docx", "word/document.xml"),
        ("a.odt", "content.xml"),
    ):
        with zipfile.ZipFile(place.workspace / name, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
            file.writestr("[Content_Types].xml", "<x/>")
            file.writestr(part, xml)
            file.writestr("xl/worksheets/sheet1.xml", "<a>" * 200_000)
            file.writestr("xl/sharedStrings.xml", b" " * (32 << 20))
        await place.call("read", path=name)


async def notebook_of_brackets(place: Place) -> None:
    """Notebooks are nested 50,000 levels deep, or hold pictures of 60 megabytes."""
    deep = "[" * 50_000 + "]" * 50_000
    place.put("a.ipynb", f'{{"cells": {deep}, "nbformat": 4, "nbformat_minor": 5, "metadata": {{}}}}')
    output = {"output_type": "display_data", "data": {"image/png": "A" * (20 << 20)}}
    cells = [{"cell_type": "code", "source": ["x"], "outputs": [output]}] * 3
    place.put("b.ipynb", json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}))
    place.put("c.ipynb", '{"cells": [{"cell_type": ' + "9" * 100_000 + "}]}")
    await place.each("read", "path", ["a.ipynb", "b.ipynb", "c.ipynb"])


async def table_of_columns(place: Place) -> None:
    """Tables have a row of two million columns, a field of 60 megabytes, and quotes that never close."""
    place.put("a.csv", ",".join(["a"] * 2_000_000))
    place.put("b.csv", "a,b\n" + '"' + "x" * (60 << 20))
    place.put("c.tsv", "\t" * 5_000_000)
    place.put("d.csv", "a,b\n" * 1_000_000)
    await place.each("read", "path", ["a.csv", "b.csv", "c.tsv", "d.csv"])


async def database_that_computes(place: Place) -> None:
    """A database has a view that counts for ever, and a schema that is broken."""
    import sqlite3

    with sqlite3.connect(place.workspace / "a.sqlite") as database:
        database.execute(
            "CREATE VIEW v AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT * FROM c"
        )
        database.execute("CREATE TABLE t (a, b GENERATED ALWAYS AS (zeroblob(900000000)))")
        database.execute("INSERT INTO t (a) VALUES (1)")
    database.close()
    place.put("b.sqlite", b"SQLite format 3\0" + b"\xff" * 8192)
    place.put("c.parquet", b"PAR1" + b"\xff" * 64 + b"\xff\xff\xff\x7fPAR1")
    await place.each("read", "path", ["a.sqlite", "b.sqlite", "c.parquet"])


async def files_that_are_mostly_holes(place: Place) -> None:
    """A file of four gigabytes takes no room on the disk; another has one line of 50 megabytes."""
    for name, head in (
        ("a.bin", b"\0"),
        ("a.txt", b"hello\n"),
        ("a.py", b"x = 1\n"),
        ("a.json", b"{"),
        ("a.pdf", b"%PDF-1.4\n"),
    ):
        with (place.workspace / name).open("wb") as file:
            file.write(head)
            file.truncate(4 << 30)
    place.put("line.txt", "a" * (50 << 20))
    for name in ("a.bin", "a.txt", "a.py", "a.json", "a.pdf", "line.txt"):
        await place.call("read", path=name)
        await place.call("edit", path=name, old_string="hello", new_string="bye")
    await place.call("attach", paths=["a.txt", "a.pdf"])
    await place.call("grep", pattern="hello")


async def source_of_brackets(place: Place) -> None:
    """Source files are nested so deep that a parser that calls itself runs out of stack."""
    texts = {
        "a.py": "(" * 60_000,
        "b.js": "[{" * 40_000,
        "c.json": "[" * 200_000,
        "d.rs": "fn a(){" * 30_000,
        "e.html": "<div>" * 60_000,
    }
    for name, text in texts.items():
        place.put(name, text)
        await place.call("read", path=name, view="outline")
        await place.call("grep", pattern="a", path=name, kind="definition")
        await place.call("edit", path=name, old_string=text[:20], new_string="x")


async def encodings_that_grow(place: Place) -> None:
    """Files claim other encodings: UTF-16 with half characters, UTF-32, UTF-7, long runs of marks."""
    place.put("a.txt", b"\xff\xfe" + b"\x00\xd8" * 500_000)
    place.put("b.txt", b"\xff\xfe\x00\x00" + b"a\0\0\0" * 200_000)
    place.put("c.py", b"# -*- coding: utf-7 -*-\n" + b"+AAAA-" * 100_000)
    place.put("d.txt", ("e" + "\u0301" * 500_000).encode())
    for name in ("a.txt", "b.txt", "c.py", "d.txt"):
        await place.call("read", path=name)
        await place.call("edit", path=name, old_string="a", new_string="b")
