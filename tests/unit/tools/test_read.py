"""Read: the lines of one text file, numbered."""

import pytest

from handtools.testing.fakes import memory_toolbox
from handtools.tools.read import MAX_BYTES, MAX_LINE_CHARS, MAX_LINES

TOTAL = "(Showing lines {} of 9 total. Use start_line={} to continue reading.)"


async def read(files, **args):
    return await memory_toolbox(files).call("read", args)


@pytest.mark.claim("read.numbered")
async def test_lines_come_numbered_from_one():
    result = await read({"a": b"one\ntwo\n"}, path="a")
    assert result.text == "     1\tone\n     2\ttwo"
    assert result.details.total_lines == 2


@pytest.mark.parametrize(
    ("args", "shown", "footer"),
    [
        ({"start_line": 3, "end_line": 4}, "3-4", TOTAL.format("3-4", 5)),
        ({"start_line": 0, "limit": 2}, "1-2", TOTAL.format("1-2", 3)),
        ({"start_line": 8}, "8-9", "(Showing lines 8-9 of 9 total.)"),
        ({"end_line": 99}, "1-9", ""),
    ],
)  # fmt: skip
async def test_a_range_is_inclusive_and_the_footer_tells_the_truth(args, shown, footer):
    result = await read({"a": b"".join(b"line %d\n" % n for n in range(1, 10))}, path="a", **args)
    first, last = shown.split("-")
    rows = [row for row in result.text.splitlines() if "\t" in row]
    assert rows[0].split() == [first, "line", first]
    assert rows[-1].split() == [last, "line", last]
    assert result.text.splitlines()[-1] == footer or not footer


@pytest.mark.claim("read.footer")
async def test_a_long_file_stops_at_the_limits_and_says_how_to_go_on():
    many = await read({"a": b"x\n" * (MAX_LINES + 500)}, path="a")
    assert many.details.end_line == MAX_LINES
    assert f"Use start_line={MAX_LINES + 1} to continue" in many.text
    wide = await read({"a": (b"y" * 999 + b"\n") * 200}, path="a")
    assert wide.details.end_line == MAX_BYTES // 1000
    assert wide.details.clipped


@pytest.mark.claim("read.long_lines")
async def test_an_overlong_line_is_shortened_and_says_so():
    result = await read({"a": b"z" * (MAX_LINE_CHARS + 5_000) + b"\nnext\n"}, path="a")
    assert len(result.text) < MAX_LINE_CHARS + 200
    assert "5000" in result.text
    assert "next" in result.text


@pytest.mark.parametrize(
    "data", [b"\x00\x01\x02" * 50, bytes(range(1, 32)) * 40, b"\x7fELF\x02\x01\x01\x00" + b"\x00" * 100]
)
async def test_a_binary_file_is_refused_by_its_content(data):
    result = await read({"a.txt": data}, path="a.txt")
    assert result.fault.code == "wrong_kind"
    assert "binary" in result.text


@pytest.mark.parametrize("text", ["Привет, мир\n", "こんにちは世界\n", "العربية\n", "🙂🙃\n"])
async def test_text_in_any_script_is_text(text):
    result = await read({"a": text.encode() * 500}, path="a", limit=1)
    assert text.strip() in result.text


async def test_a_missing_file_suggests_near_names():
    result = await read({"src/settings.py": b"", "src/main.py": b""}, path="src/setings.py")
    assert result.fault.code == "not_found"
    assert "src/settings.py" in result.text
    assert "main" not in result.text


async def test_an_empty_file_says_so():
    assert "empty" in (await read({"a": b""}, path="a")).text


async def test_a_start_past_the_end_names_the_length():
    result = await read({"a": b"1\n2\n"}, path="a", start_line=9)
    assert result.fault.code == "invalid_input"
    assert "2 lines" in result.text


async def test_a_form_feed_is_no_line_end():
    result = await read({"a": b"one\x0cstill one\ntwo\n"}, path="a")
    assert result.details.total_lines == 2


async def test_a_read_is_remembered_for_the_agent_that_made_it():
    box = memory_toolbox({"a": b"seen\n"})
    await box.call("read", {"path": "a"})
    [logged] = box.workspace.journal.calls.page()
    assert (logged.tool, logged.args["path"], logged.status) == ("read", "a", "ok")
