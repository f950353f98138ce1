"""Tables (CSV, TSV, SQLite): a preview or a refusal, from any bytes."""

import base64
import sqlite3
import zlib
from contextlib import closing

from handtools.core.errors import ToolError
from handtools.host.media import table_previews


def database():
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("PRAGMA page_size = 512")
        connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
        connection.execute("INSERT INTO t VALUES (1, 'x')")
        connection.execute("CREATE VIEW v AS SELECT b FROM t")
        connection.commit()
        return connection.serialize()


SEEDS = [b'a,b\n1,"x\ny"\n', b"a;b;c\r\n1;2;3\r\n", b"a\tb\n\xe9\t\xff", database()]
WORDS = [
    '"',
    ",",
    ";",
    "\t",
    "\r\n",
    "|",
    "SQLite format 3",
    "CREATE TABLE t(a)",
    "CREATE VIEW v AS SELECT",
    "\x00",
]
PARSERS = ["handtools.host.media.table_previews", "handtools.text.encoding"]
FOUND = {
    "a schema in another encoding than UTF-8 ended in UnicodeDecodeError": zlib.decompress(
        base64.b85decode(
            "c-jjN^vNtqRY=P(%1ta$FlJz4U}R))P*7li044?m0I^w+_>2rh0$z}2#wiSphkyhM&|)A3)G&+;pu@x_%FoZ?Tb7wxURLHD<mwpWsu1Ss8m>^L;25kB?CRs{9MYGh;1=ZXt59OY$R^Iu&zM<~n3R)RQo;mPAL8ib<El`ippmHH=@;Va?i!>J5aj9W7!;}C?HZ}0kfade8WExiiW^48UkpG*6et^7LCM0%%)nm(08q9k-v"
        )
    ),
}


def fuzz(data):
    for name in ("a.csv", "a.tsv"):
        try:
            shown = table_previews.preview(name, data)
        except ToolError:
            continue
        if shown is not None:
            shown.text.encode("utf-8", "surrogatepass")
