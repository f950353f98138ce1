"""Files that are made to be hard to read cost a worker its life, and us nothing."""

import resource
import socket
import sys
import zlib
from pathlib import Path

import pytest

from handtools.core.errors import TooLarge, WrongKind
from handtools.core.media import PreviewRequest
from handtools.host.confined_workers import (
    TaskFailed,
    WorkerLimits,
    Workers,
    WorkerTask,
    _run_in_own_process,
)
from handtools.host.media.local_media import LocalMedia
from handtools.host.sandbox.runners import landlock_ruleset

HERE = Path(__file__).parent


def task(name):
    return WorkerTask(module="worker_tasks", function=name)


@pytest.fixture
def hired():
    made = Workers(
        [str(HERE), *sys.path], WorkerLimits(seconds=3.0, memory_bytes=600 << 20, output_bytes=4 << 20)
    )
    yield made
    made.close()


def pdf_of_blanks(size):
    """A page whose content unpacks to so many bytes, twice packed."""
    packing = zlib.compressobj(9)
    packed = b"".join(packing.compress(bytes(1 << 24)) for _ in range(size >> 24)) + packing.flush()
    stream = zlib.compress(packed, 9)
    parts = [
        b"%PDF-1.4",
        b"1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj",
        b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj",
        b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>endobj",
        b"4 0 obj<</Length %d/Filter[/FlateDecode/FlateDecode]>>stream" % len(stream),
        stream,
        b"endstream endobj",
        b"trailer<</Root 1 0 R>>",
    ]
    return b"\n".join(parts)


async def test_a_small_pdf_that_unpacks_to_gigabytes_takes_none_of_ours():
    data = pdf_of_blanks(3 << 30)
    assert len(data) < 10_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TooLarge, match="Can't show"):
        await LocalMedia().preview("a.pdf", data, PreviewRequest())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


def test_a_task_gives_back_values_and_bytes(hired):
    made = hired.call(task("echo"), {"say": "häh"}, b"abc")
    assert (made.value, made.blobs) == ({"said": "häh"}, (b"abc", b"cba"))


def test_what_a_task_raises_for_the_model_comes_back_as_it_was(hired):
    with pytest.raises(WrongKind) as raised:
        hired.call(task("refuse"), {}, b"")
    assert (raised.value.message, raised.value.hint) == ("It is none.", "Take another.")


def test_a_task_without_a_kept_process_gives_back_the_same(hired):
    made = _run_in_own_process(hired, task("echo"), {"say": "häh"}, b"abc")
    assert (made.value, made.blobs) == ({"said": "häh"}, (b"abc", b"cba"))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("fill", {"bytes": 1 << 30}), ("spin", {}), ("babble", {"bytes": 8 << 20})],
    ids=["memory", "time", "output"],
)
def test_what_goes_over_a_limit_is_ended_and_the_next_task_is_done(hired, name, arguments):
    with pytest.raises(TaskFailed):
        hired.call(task(name), arguments, b"")
    assert hired.call(task("echo"), {"say": ""}, b"x").blobs == (b"x", b"x")


confined = pytest.mark.skipif(landlock_ruleset.landlock_abi() < 1, reason="the kernel has no Landlock")


@confined
def test_a_worker_reads_no_file_that_is_no_program(hired, tmp_path):
    (tmp_path / "secret").write_text("s3cret")
    with pytest.raises(TaskFailed):
        hired.call(task("look"), {"path": str(tmp_path / "secret")}, b"")


@confined
def test_a_worker_leaves_no_file(hired, tmp_path):
    with pytest.raises(TaskFailed):
        hired.call(task("leave"), {"path": str(tmp_path / "left")}, b"x")
    assert not list(tmp_path.iterdir())


def test_a_worker_reaches_nobody(hired):
    with socket.create_server(("127.0.0.1", 0)) as server:
        with pytest.raises(TaskFailed):
            hired.call(task("connect"), {"port": server.getsockname()[1]}, b"")
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_kept_process_that_is_gone_is_replaced(hired):
    assert hired.call(task("echo"), {"say": "one"}, b"").value == {"said": "one"}
    hired._process.kill()
    hired._process.wait()
    assert hired.call(task("echo"), {"say": "two"}, b"").value == {"said": "two"}


def test_a_child_runs_tasks_until_one_fails(hired):
    child = hired.open_child(task("echo"))
    for data in (b"one", b"two"):
        assert child.is_usable
        assert child.call({"say": ""}, data).blobs == (data, data[::-1])
    child.close()
    assert not child.is_usable
    failing = hired.open_child(task("spin"))
    with pytest.raises(TaskFailed):
        failing.call({}, b"")
    assert not failing.is_usable
    failing.close()
