"""Media: files that are not plain text, through `read`."""

import base64
import gzip
import io
import json
import sqlite3
import struct
import tarfile
import zipfile
import zlib

import pytest
from PIL import Image as Pictures

from handtools.core.errors import TooLarge
from handtools.core.result import Image
from handtools.host.media import archive_listings, images
from handtools.host.media.local_media import LocalMedia
from handtools.testing.memory_toolbox import memory_toolbox

BLACK, WHITE = (0, 0, 0), (255, 255, 255)


async def read(path, data, **args):
    return await memory_toolbox({path: data}).call("read", {"path": path, **args})


def picture(width=8, height=6, shape="PNG", **options):
    made = io.BytesIO()
    Pictures.new("RGB", (width, height), WHITE).save(made, shape, **options)
    return made.getvalue()


def shown(result):
    return [block for block in result.content if isinstance(block, Image)]


def opened(image):
    return Pictures.open(io.BytesIO(image.data))


@pytest.mark.claim("read.media")
@pytest.mark.parametrize(
    ("shape", "kind"), [("PNG", "png"), ("JPEG", "jpeg"), ("GIF", "gif"), ("WEBP", "webp")]
)
async def test_a_small_image_comes_back_as_it_is(shape, kind):
    data = picture(shape=shape)
    result = await read("a.bin", data)
    assert shown(result) == [Image(data, f"image/{kind}")]
    assert "8 x 6" in result.text
    assert result.details.view == "image"


async def test_a_large_image_is_made_smaller_and_says_so():
    result = await read("a.png", picture(4000, 1000))
    [image] = shown(result)
    assert opened(image).size == (1568, 392)
    assert "4000 x 1000" in result.text
    assert "1568 x 392" in result.text


async def test_an_image_is_turned_the_way_the_camera_meant():
    exif = Pictures.Exif()
    exif[0x0112] = 6
    [image] = shown(await read("a.jpg", picture(40, 20, "JPEG", exif=exif)))
    assert opened(image).size == (20, 40)


@pytest.mark.parametrize("shape", ["BMP", "TIFF", "ICO"])
async def test_a_format_that_models_do_not_take_is_turned_into_one_that_they_do(shape):
    [image] = shown(await read("a", picture(64, 64, shape=shape)))
    assert image.media_type in {"image/png", "image/jpeg"}


async def test_a_transparent_image_stays_transparent():
    made = io.BytesIO()
    Pictures.new("RGBA", (3000, 10), (0, 0, 0, 0)).save(made, "PNG")
    [image] = shown(await read("a.png", made.getvalue()))
    assert opened(image).mode == "RGBA"


def test_an_image_of_too_many_pixels_is_refused_before_it_is_unpacked(monkeypatch):
    monkeypatch.setattr(images, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(TooLarge, match="20 x 20 pixels"):
        images.preview("a.png", picture(20, 20))


async def test_an_image_that_even_its_reader_fears_is_refused_as_too_large():
    size = struct.pack(">II", 20_000, 20_000)
    data = bytearray(picture())
    data[16:24] = size
    data[29:33] = struct.pack(">I", zlib.crc32(bytes(data[12:29])))
    result = await read("a.png", bytes(data))
    assert result.fault.code == "too_large"
    assert "pixels" in result.text


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n" + b"\0" * 50, picture()[:40], b"%PDF-1.7\n\0\1\2" * 9, b"PK\3\4\0" * 9]
)
async def test_a_damaged_file_is_an_error_that_says_so(data):
    result = await read("a", data)
    assert result.fault.code == "wrong_kind"
    assert "can't be read" in result.text


def pdf(pages, head=b"%\xe2\xe3\xcf\xd3\n\0", size=b"300 200"):
    """A small PDF, written by hand: a page per text."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    kids = []
    for text in pages:
        stream = b"BT /F1 24 Tf 20 100 Td (%s) Tj ET" % text.encode()
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        font = b"<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
        page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %s] /Contents %d 0 R /Resources %s >>"
        objects.append(page % (size, len(objects), font))
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(pages), b" ".join(kids))
    made = b"%PDF-1.4\n" + head
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = len(made)
    made += b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
    return made + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        start,
    )


async def test_a_pdf_is_read_page_by_page():
    result = await read("a.pdf", pdf(["first page", "second page", "third page"]))
    assert "PDF, 3 pages" in result.text
    assert "--- page 2 ---" in result.text
    assert "second page" in result.text
    some = await read("a.pdf", pdf(["first page", "second page", "third page"]), pages="2-2")
    assert "second page" in some.text
    assert "first page" not in some.text
    assert 'pages="3-"' in some.text


@pytest.mark.claim("read.image")
async def test_pages_of_a_pdf_can_be_seen():
    result = await read("a.pdf", pdf(["one", "two"]), view="image", pages="2")
    [image] = shown(result)
    assert opened(image).size == (600, 400)


async def test_a_pdf_without_a_nul_is_still_a_pdf():
    data = pdf(["one", "two"], head=b"")
    assert "--- page 2 ---" in (await read("a.pdf", data)).text
    assert len(shown(await read("a.pdf", data, view="image"))) == 2
    assert "1\t%PDF-1.4" in (await read("a.pdf", data, view="text")).text
    large = data + b"% filled up\n" * 400_000
    assert "PDF, 2 pages" in (await read("a.pdf", large)).text


async def test_a_poster_is_rendered_no_larger_than_it_is_shown():
    [image] = shown(await read("a.pdf", pdf(["one"], size=b"14400 7200"), view="image"))
    assert opened(image).size == (1568, 784)


async def test_a_page_past_the_end_names_the_length():
    result = await read("a.pdf", pdf(["one"]), pages="7")
    assert result.fault.code == "invalid_input"
    assert "1 page;" in result.text


def notebook():
    png = base64.b64encode(picture()).decode()
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {
            "cell_type": "code",
            "execution_count": 3,
            "source": "print('x')",
            "outputs": [
                {"output_type": "stream", "text": ["x\n"]},
                {"output_type": "display_data", "data": {"image/png": png, "text/plain": "<Figure>"}},
                {"output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": []},
            ],
        },
    ]
    return json.dumps({"cells": cells, "metadata": {"kernelspec": {"language": "python"}}}).encode()


async def test_a_notebook_is_its_cells_with_their_outputs():
    result = await read("a.ipynb", notebook())
    assert "--- cell 1: markdown ---" in result.text
    assert "--- cell 2: code [3] (python) ---" in result.text
    assert "print('x')" in result.text
    assert "ValueError: bad" in result.text
    assert len(shown(result)) == 1
    assert result.details.view == "notebook"


async def test_a_range_of_a_notebook_comes_with_its_own_pictures_only():
    book = json.loads(notebook())
    book["cells"] = [book["cells"][1], *book["cells"][:1] * 5, *book["cells"][1:] * 6]
    data = json.dumps(book).encode()
    whole = await read("a.ipynb", data)
    assert len(shown(whole)) == 4
    assert "3 more pictures" in whole.text
    assert not shown(await read("a.ipynb", data, start_line=1, end_line=3))
    part = await read("a.ipynb", data, start_line=1, end_line=12)
    assert len(shown(part)) == 1


def plotted(encoded, filler=""):
    output = {"output_type": "display_data", "data": {"image/png": encoded, "text/html": filler}}
    cell = {"cell_type": "code", "source": "plot()", "outputs": [output]}
    return json.dumps({"cells": [cell], "metadata": {}}).encode()


async def test_a_picture_in_a_notebook_is_made_smaller_like_any_other():
    data = plotted(base64.b64encode(picture(3000, 2000)).decode())
    [image] = shown(await read("a.ipynb", data))
    assert max(opened(image).size) <= 1568


async def test_a_picture_in_a_notebook_that_is_none_is_not_sent():
    result = await read("a.ipynb", plotted(base64.b64encode(b"no picture").decode()))
    assert result.ok
    assert not shown(result)


async def test_a_notebook_of_many_megabytes_is_still_its_cells():
    result = await read("a.ipynb", plotted("", filler="x" * (5 << 20)))
    assert "--- cell 1: code ---" in result.text
    assert result.details.view == "notebook"


async def test_a_notebook_as_text_is_its_json():
    assert '"cell_type"' in (await read("a.ipynb", notebook(), view="text")).text


async def test_a_notebook_that_is_none_can_still_be_read_as_text():
    for data in (b'{"no": "cells"}', b"[1]", b'{"cells": [null]}'):
        result = await read("a.ipynb", data)
        assert result.fault.code == "wrong_kind"
        assert "its cells have an unexpected structure" in result.text
        assert "view=text" in result.text


def zipped():
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("pkg/a.py", "x" * 1234)
    return made.getvalue()


def tarred(mode):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:
        entry = tarfile.TarInfo("pkg/a.py")
        entry.size = 1234
        archive.addfile(entry, io.BytesIO(b"x" * 1234))
    return made.getvalue()


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("a.whl", zipped()),
        ("a.tar", tarred("w")),
        ("a.tgz", tarred("w:gz")),
        ("a", tarred("w:bz2")),
        ("a", tarred("w:xz")),
    ],
    ids=["zip", "tar", "gz", "bz2", "xz"],
)
async def test_an_archive_is_a_listing(path, data):
    result = await read(path, data)
    assert "1,234  pkg/a.py" in result.text
    assert result.details.view == "archive"


async def test_a_name_in_an_archive_can_not_look_like_another_entry():
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("a\n           1  b", "")
    assert (await read("a.zip", made.getvalue())).details.total_lines == 1


async def test_one_packed_file_that_is_no_archive_says_what_to_do():
    result = await read("a.log.gz", gzip.compress(b"one line\n"))
    assert result.fault.code == "wrong_kind"
    assert "decompress it with a command" in result.text


def test_an_archive_that_would_unpack_to_too_much_is_left_alone(monkeypatch):
    monkeypatch.setattr(archive_listings, "MAX_UNPACKED_TAR_BYTES", 1000)
    with pytest.raises(TooLarge, match="decompresses to more"):
        archive_listings.preview("a.tgz", gzip.compress(tarred("w")))


async def test_a_database_is_its_schema_and_first_rows(tmp_path):
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE parts (id INTEGER, name TEXT, raw BLOB)")
    connection.executemany(
        "INSERT INTO parts VALUES (?, ?, ?)", [(n, f"part {n}", b"\0\1") for n in range(100)]
    )
    connection.commit()
    connection.close()
    result = await read("a.db", (tmp_path / "a.db").read_bytes())
    assert "CREATE TABLE parts (id INTEGER, name TEXT, raw BLOB)" in result.text
    assert "100 rows" in result.text
    assert "9 | part 9 | (2 bytes)" in result.text
    assert "part 10" not in result.text
    assert result.details.left_out == "rows after the first 10 of each"


async def test_a_short_csv_is_text_and_a_long_one_is_columns_and_first_rows():
    short = await read("a.csv", b"id;name\n1;one\n")
    assert "1\tid;name" in short.text
    long = await read("a.csv", b"id;name\n" + b"".join(b"%d;name %d\n" % (n, n) for n in range(5000)))
    assert "CSV, 2 columns, 5,000 rows" in long.text
    assert "0 | name 0" in long.text
    assert long.details.left_out
    part = await read("a.csv", b"id;name\n" + b"x;y\n" * 5000, start_line=4000, limit=1)
    assert part.text.startswith("4000\tx;y")


async def test_rows_are_counted_and_not_the_lines_of_their_cells():
    rows = b"".join(b'%d,"one\ntwo\nthree"\n' % n for n in range(2500))
    assert "CSV, 2 columns, 2,500 rows" in (await read("a.csv", b"id,text\n" + rows)).text


async def test_a_binary_file_of_another_kind_is_named_in_the_refusal():
    result = await read("a", b"\x7fELF\x02\x01\x01\x00" + b"\0" * 100)
    assert result.fault.code == "wrong_kind"
    assert "application/x-elf" in result.text


async def test_a_missing_reader_is_named_to_the_person(monkeypatch):
    monkeypatch.setattr("handtools.host.media.local_media.find_spec", lambda name: None)
    result = await read("a.png", picture())
    assert result.fault.code == "wrong_kind"
    assert "handtools-slim[media]" in result.text


def test_kinds_are_told_by_content_before_the_name():
    media = LocalMedia()
    assert media.kind("a.txt", picture()) == "image"
    assert media.kind("a.tsv", b"a\tb\n") == "table"
    assert media.kind("a.py", b"import os\n") is None
