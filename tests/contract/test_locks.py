"""The contract of Locks."""

import subprocess
import sys
import textwrap

import anyio
import pytest

from handtools.core.errors import Busy
from handtools.host.files import file_locks as locks_module
from handtools.host.files.file_locks import FileLocks

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["flock", "in process"])
def make_locks(request, tmp_path, monkeypatch):
    """Build the locks of one toolbox; each call is another toolbox on the same checkout."""
    if request.param == "in process":
        monkeypatch.setattr(locks_module, "HAS_FILE_LOCKS", False)
    return lambda: FileLocks(tmp_path / "locks")


async def test_one_key_is_held_by_one_at_a_time(make_locks):
    inside = most = 0

    async def work(locks):
        nonlocal inside, most
        for _ in range(5):
            async with locks.hold(["a"], timeout=20):
                inside += 1
                most = max(most, inside)
                await anyio.lowlevel.checkpoint()
                inside -= 1

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(work, make_locks())
    assert most == 1


async def test_other_keys_are_free(make_locks):
    locks = make_locks()
    async with locks.hold(["a"], timeout=0), locks.hold(["b"], timeout=0):
        pass


async def test_a_held_key_is_busy_when_the_time_is_up_and_free_afterwards(make_locks):
    first, second = make_locks(), make_locks()
    async with first.hold(["a", "b"], timeout=0):
        with pytest.raises(Busy, match="`b`"):
            async with second.hold(["b"], timeout=0.05):
                pass
    async with second.hold(["b"], timeout=0):
        pass


async def test_what_was_taken_before_a_busy_key_is_let_go(make_locks):
    locks = make_locks()
    async with locks.hold(["b"], timeout=0):
        with pytest.raises(Busy):
            async with make_locks().hold(["a", "b", "c"], timeout=0.02):
                pass
        async with locks.hold(["a", "c"], timeout=0):
            pass


async def test_opposite_orders_do_not_lock_each_other_out(make_locks):
    done = 0

    async def work(keys):
        nonlocal done
        for _ in range(10):
            async with make_locks().hold(keys, timeout=20):
                await anyio.lowlevel.checkpoint()
                done += 1

    async with anyio.create_task_group() as group:
        group.start_soon(work, ["a", "b", "c"])
        group.start_soon(work, ["c", "b", "a"])
        group.start_soon(work, ["b", "a", "b"])
    assert done == 30


async def test_a_cancelled_waiter_holds_nothing(make_locks):
    locks = make_locks()
    async with locks.hold(["b"], timeout=0):
        with anyio.move_on_after(0.03) as scope:
            async with locks.hold(["a", "b"], timeout=60):
                pass
        assert scope.cancelled_caught
        async with locks.hold(["a"], timeout=0):
            pass


async def test_a_failure_inside_lets_go(make_locks):
    locks = make_locks()
    with pytest.raises(ZeroDivisionError):
        async with locks.hold(["a"], timeout=0):
            raise ZeroDivisionError
    async with locks.hold(["a"], timeout=0):
        pass


async def test_no_keys_are_no_locks(make_locks):
    async with make_locks().hold([], timeout=0):
        pass


WORKER = textwrap.dedent("""
    import sys, time, anyio
    from handtools.host.files.file_locks import FileLocks

    async def main(folder, counter, rounds):
        locks = FileLocks(folder)
        longest = 0.0
        for _ in range(rounds):
            asked = time.monotonic()
            async with locks.hold(["counter"], timeout=60):
                longest = max(longest, time.monotonic() - asked)
                with open(counter) as file:
                    value = int(file.read())
                await anyio.sleep(0)
                with open(counter, "w") as file:
                    file.write(str(value + 1))
        print(longest)

    anyio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
""")


def test_eight_processes_count_without_losing_one_and_all_get_their_turn(tmp_path):
    counter, rounds = tmp_path / "counter", 60
    counter.write_text("0")
    command = [sys.executable, "-c", WORKER, str(tmp_path / "locks"), str(counter), str(rounds)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    waits = [float(worker.communicate(timeout=60)[0]) for worker in workers]
    assert counter.read_text() == str(8 * rounds)
    # A second on a quiet disk; one that starves waits until `communicate` gives up.
    assert max(waits) < 40.0


def test_a_killed_holder_leaves_nothing_locked(tmp_path):
    script = textwrap.dedent("""
        import sys, anyio
        from handtools.host.files.file_locks import FileLocks

        async def main(folder):
            async with FileLocks(folder).hold(["a"], timeout=0):
                print("held", flush=True)
                await anyio.sleep(60)

        anyio.run(main, sys.argv[1])
    """)
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    holder.kill()
    holder.communicate()

    async def take():
        async with FileLocks(tmp_path).hold(["a"], timeout=30):
            pass

    anyio.run(take)
