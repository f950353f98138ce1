import time

import pytest

from handtools.text.encoding import DecodedText, Unencodable, decode, is_binary, without_surrogates

GERMAN = "// Überprüft die Größe des Puffers, bevor er gelöscht wird.\n"
RUSSIAN = "// Проверяет размер буфера перед удалением\n"
JAPANESE = "// バッファのサイズを確認してから削除します。\n"
CHINESE = "# 删除之前检查缓冲区的大小\n"


def test_plain_utf8_is_certain():
    source = decode("naïve ✓\n".encode())
    assert (source.body, source.encoding, source.bom) == ("naïve ✓\n", "utf-8", b"")
    assert source.confidence == 1.0


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
        (b"\xff\xfe\x00\x00", "utf-32-le"),
        (b"\x00\x00\xfe\xff", "utf-32-be"),
    ],
)
def test_a_byte_order_mark_decides_and_is_kept_out_of_the_body(mark: bytes, encoding: str):
    source = decode(mark + "tést 語\n".encode(encoding))
    assert (source.body, source.encoding, source.bom) == ("tést 語\n", encoding, mark)
    assert source.encode("x") == mark + "x".encode(encoding)


def test_a_file_of_nothing_but_a_mark_has_an_empty_body():
    assert decode(b"\xff\xfe") == DecodedText("", "utf-16-le", b"\xff\xfe")


def test_a_mark_before_damaged_utf8_is_still_a_mark():
    source = decode(b"\xef\xbb\xbfab\xff")
    assert source.bom == b"\xef\xbb\xbf"
    assert source.body == "ab\udcff"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wide_text_without_a_mark_is_told_by_its_nuls(encoding: str):
    data = "Windows Registry Editor\r\nüber 中\r\n".encode(encoding)
    assert decode(data).encoding == encoding
    assert not is_binary(data)


def test_numbers_that_are_no_text_are_not_taken_for_utf16():
    data = b"".join(number.to_bytes(2, "little") for number in range(1, 255))
    assert decode(data).encoding == "utf-8"
    assert is_binary(data)


@pytest.mark.parametrize(
    ("declaration", "encoding"),
    [
        ("# -*- coding: cp1251 -*-", "cp1251"),
        ("#!/usr/bin/python\n# vim: set fileencoding=koi8-r :", "koi8-r"),
        ('<?xml version="1.0" encoding="iso-8859-5"?>', "iso8859-5"),
        ('<html><head><meta charset="windows-1251">', "cp1251"),
        ("<meta http-equiv=Content-Type content='text/html; charset=KOI8-R'>", "koi8-r"),
        ('@charset "windows-1251";', "cp1251"),
    ],
)
def test_a_declaration_is_believed(declaration: str, encoding: str):
    text = f"{declaration}\n{RUSSIAN}"
    source = decode(text.encode(encoding))
    assert (source.body, source.encoding) == (text, encoding)


def test_ascii_under_a_declaration_is_written_as_declared():
    source = decode(b"# coding: latin-1\nx = 1\n")
    assert source.encode("é") == b"\xe9"


def test_strict_utf8_outweighs_a_declaration():
    data = "# coding: latin-1\nx = 'é'\n".encode()
    assert decode(data).encoding == "utf-8"


@pytest.mark.parametrize("name", ["utf-16-le", "cp037", "rot13", "hex", "utf-7", "no-such", "idna"])
def test_a_declaration_that_cannot_be_true_is_ignored(name: str):
    data = f"# coding: {name}\nx = 1\n".encode()
    assert decode(data) == DecodedText(data.decode(), "utf-8")


def test_a_declaration_on_the_third_line_is_none():
    data = b"\n\n# coding: cp1251\n"
    assert decode(data).encoding == "utf-8"


def test_a_web_page_that_says_latin1_is_read_as_browsers_read_it():
    text = '<meta charset="iso-8859-1"> “quoted”'
    assert decode(text.encode("cp1252")).body == text


def test_utf8_with_a_few_bad_bytes_stays_utf8():
    data = "é ü ñ 語".encode() + b"\xff\n"
    source = decode(data)
    assert source.encoding == "utf-8"
    assert source.body == "é ü ñ 語\udcff\n"
    assert 0 < source.confidence < 1


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (GERMAN, "cp1252"),
        ("/* El año de la señal: opción válida */\n", "cp1252"),
        ('char *name = "Ångström";\n', "cp1252"),
        ("café\n", "cp1252"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        ("# Zażółć gęślą jaźń, proszę państwa\n", "cp1250"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        (CHINESE, "gbk"),
    ],
)
def test_undeclared_legacy_text_is_detected_with_a_confidence(text: str, encoding: str):
    source = decode(text.encode(encoding))
    assert source.body == text
    assert 0 < source.confidence < 1


def test_legacy_letters_deep_in_a_large_file_are_found():
    text = "int x = 1;\n" * 20_000 + GERMAN
    assert decode(text.encode("cp1252")).body == text


def test_one_enormous_legacy_line_is_detected():
    text = JAPANESE.strip() * 2_000
    assert decode(text.encode("shift_jis")).body == text


def test_a_character_the_encoding_cannot_hold_is_named_with_its_place():
    source = decode(RUSSIAN.encode("cp1251"))
    with pytest.raises(Unencodable) as caught:
        source.encode("слово 語")
    assert caught.value.character == "語"
    assert caught.value.offset == 6
    assert source.encoding in str(caught.value)


def test_a_lone_surrogate_cannot_be_written_to_a_valid_file():
    with pytest.raises(Unencodable):
        decode(b"fine\n").encode("\udcff")


def test_what_is_displayed_holds_no_byte_that_stood_for_nothing():
    assert without_surrogates(decode("é ü".encode() + b"\xff").body) == "é ü\ufffd"
    assert without_surrogates("語 ok") == "語 ok"


def test_adopted_text_takes_the_dominant_end_of_the_file():
    assert decode(b"a\r\nb\r\nc\n").with_own_line_ends("x\ny\r\n") == "x\r\ny\r\n"
    assert decode(b"a\nb\n").with_own_line_ends("x\r\ny") == "x\ny"


def test_adopted_text_is_unchanged_when_the_file_has_no_line_end():
    assert decode(b"").with_own_line_ends("x\r\ny\n") == "x\r\ny\n"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain\ttext\r\n\f",
        b"\x1b[31mred\x1b[0m\n",
        CHINESE.encode() * 1_000,
        RUSSIAN.encode("cp1251"),
        JAPANESE.encode("shift_jis"),
        b"\xff\xfe" + "text 語".encode("utf-16-le"),
        b"x" + "語".encode() * 2_000,
        b"a" * 8_192 + b"\x00",
    ],
)
def test_text_in_any_script_is_not_binary(data: bytes):
    assert not is_binary(data)


@pytest.mark.parametrize(
    "data",
    [
        b"\x00",
        b"\x7fELF\x02\x01\x01\x00\x00",
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
        bytes(range(1, 32)) * 20,
        b"a" * 8_191 + b"\x00",
        b"\xff\xfe" + bytes(range(256)),
    ],
)
def test_nuls_and_control_characters_are_binary(data: bytes):
    assert is_binary(data)


def test_a_large_valid_file_is_decoded_in_a_blink():
    data = b"    some line of source code\n" * 4_000
    durations = []
    for _ in range(20):
        start = time.perf_counter()
        decode(data)
        durations.append(time.perf_counter() - start)
    assert min(durations) < 0.0005
