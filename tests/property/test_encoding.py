from hypothesis import given
from hypothesis import strategies as st

from handtools.text.encoding import Unencodable, decode, is_binary

ENCODINGS = [
    *("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"),
    *("latin-1", "cp1252", "cp1251", "koi8-r", "cp437"),
    *("shift_jis", "euc_jp", "iso2022_jp", "gb18030", "big5", "euc_kr", "utf-7"),
]
MARKS = [b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\0\0", b"\0\0\xfe\xff"]
DECLARATIONS = [
    b"",
    *(f"# coding: {name}\n".encode() for name in [*ENCODINGS, "cp037", "unicode_escape", "idna"]),
    *(f'<?xml version="1.0" encoding="{name}"?>'.encode() for name in ENCODINGS),
]

encoded = st.builds(
    lambda text, encoding: text.encode(encoding, "ignore"),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.sampled_from(ENCODINGS),
)
anything = st.builds(
    lambda mark, declaration, body, tail: mark + declaration + body + tail,
    st.sampled_from(MARKS),
    st.sampled_from(DECLARATIONS),
    encoded | st.binary(),
    st.binary(max_size=4),
)


@given(anything)
def test_any_bytes_come_back_as_they_were(data: bytes):
    source = decode(data)
    assert source.encode(source.body) == data
    assert 0 <= source.confidence <= 1


@given(anything, st.data())
def test_an_edit_changes_no_byte_outside_of_it(data: bytes, draw: st.DataObject):
    source = decode(data)
    start = draw.draw(st.integers(0, len(source.body)))
    end = draw.draw(st.integers(start, len(source.body)))
    before, after = source.body[:start], source.body[end:]
    edited = source.encode(before + "new" + after)
    assert edited.startswith(source.encode(before))
    assert edited.endswith(source.encode(after)[len(source.bom) :])


@given(anything, st.text())
def test_text_is_written_whole_or_refused_with_the_culprit(data: bytes, text: str):
    source = decode(data)
    refused = None
    try:
        written = source.encode(text)
    except Unencodable as error:
        refused = error
    if refused:
        assert text[refused.offset] == refused.character
    else:
        body = written[len(source.bom) :]
        assert body.decode(source.encoding, source.errors) == text


@given(anything, st.text(st.sampled_from("ab\r\n")))
def test_adopting_twice_is_adopting_once(data: bytes, text: str):
    source = decode(data)
    assert source.with_own_line_ends(source.with_own_line_ends(text)) == source.with_own_line_ends(text)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_utf8_text_of_any_script_and_length_is_not_binary(text: str):
    assert not is_binary(text.encode() * 50)


@given(anything)
def test_whether_it_is_binary_can_be_told_of_any_bytes(data: bytes):
    assert is_binary(data) in (True, False)
