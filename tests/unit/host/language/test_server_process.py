"""Child: a language server as a process of ours."""

import subprocess
import sys

PROGRAM = """
import asyncio, atexit, threading
from handtools.host.language.server_process import run_in_thread

loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
work = lambda: print("done")
atexit.register(lambda: asyncio.run_coroutine_threadsafe(run_in_thread(work), loop).result(10))
"""


def test_what_is_left_to_do_when_the_interpreter_ends_is_done():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "done\n"
    assert not done.stderr
