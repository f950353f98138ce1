"""Pages come out as text, whatever is said about their bytes."""

import pytest

from handtools.host.web.page_text import decode_page


@pytest.mark.parametrize(
    ("data", "label", "encoding"),
    [
        ("Grüße".encode(), "", "utf-8"),
        ("Grüße".encode(), "utf-8", "utf-8"),
        ("Grüße".encode(), "iso-8859-1", "utf-8"),
        ("Grüße".encode("latin-1"), "iso-8859-1", "cp1252"),
        ("“Grüße”".encode("cp1252"), "latin1", "cp1252"),
        ("Grüße".encode("utf-16"), "iso-8859-1", "utf-16-le"),
        ("漢字".encode("gbk"), "gb2312", "gb18030"),
        ("日本".encode("cp932"), '"Shift_JIS"', "cp932"),
        ("Grüße".encode(), "punycode", "utf-8"),
        (b"plain", "hex", "utf-8"),
        (b"plain", "no such thing", "utf-8"),
    ],
)
def test_the_bytes_have_the_last_word(data, label, encoding):
    source = decode_page(data, label)
    assert source.encoding == encoding
    assert "�" not in source.body
    assert source.body.strip("“”") in {"Grüße", "漢字", "日本", "plain"}
