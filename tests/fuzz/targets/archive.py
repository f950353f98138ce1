"""Archives: a listing or a refusal, from any bytes."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

from handtools.core.errors import ToolError
from handtools.host.media import archive_listings


def tar():
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("a\u00e9/" + "b" * 120)
        info.size = 3
        archive.addfile(info, io.BytesIO(b"abc"))
    return held.getvalue()[:4096]


def zipped():
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("a/b.txt", "abc")
        archive.comment = b"c"
    return held.getvalue()


SEEDS = [
    zipped(),
    tar(),
    gzip.compress(tar(), mtime=0),
    bz2.compress(tar()),
    lzma.compress(tar()),
    b"PK\5\6" + b"\0" * 18,
]
WORDS = ["PK\x01\x02", "PK\x03\x04", "PK\x05\x06", "PK\x06\x06", "PK\x06\x07", "ustar", "\x1f", "BZh9", "path=", "size=",
         "GNU.sparse.map=", "hdrcharset=", "mtime=", "./././@LongLink"]  # fmt: skip
PARSERS = ["handtools.host.media", "tarfile", "zipfile"]
FOUND = {
    "a zip of a version that Python does not know ended in NotImplementedError": b"PK\x03\x04\x14\x00\x00\x00\x00\x00Fcp]\xc2A$5\x03\x00\x00\x00\x03\x00\x00\x00\x07\x00\x00\x00a/b.txtabcPK\x01\x02\x14\x03Tp]\xc2A$5\x03\x00\x00\x00\x03\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x01\x00\x00\x00\x00a/b.txtPK\x05\x06\x00\x00\x00\x00\x01\x00\x01\x005\x00\x00\x00(\x00\x00\x00\x01\x00c",
}


def fuzz(data):
    for name in ("a.zip", "a.tar"):
        try:
            shown = archive_listings.preview(name, data)
        except ToolError:
            continue
        assert isinstance(shown.text, str)
        assert shown.title
