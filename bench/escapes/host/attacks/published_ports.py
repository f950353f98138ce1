"""Ports of jobs that a person agreed to reach: to more than that, for longer, or the other way round."""

import asyncio
import os
import socket
import time
from contextlib import ExitStack
from typing import Any

from bench.escapes.host.place import Person, Place
from handtools import Result

_SERVE = """
import os, socket, sys
port, later = int(sys.argv[1]), sys.argv[2:]
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", port)); s.listen(500); print("listens", flush=True)
if later:
    input(); s.close()
    if later == ["unix"]:
        for name in (chr(0) + "127.0.0.1:%d" % port, "127.0.0.1:%d" % port):
            u = socket.socket(socket.AF_UNIX); u.bind(name); u.listen()
    print("swapped", flush=True); input()
while True:
    c = s.accept()[0]
    try: c.sendall(b"REACHED" * 10)
    except OSError: pass
"""
_ENDLESS = """
import socket, threading
s = socket.create_server(("127.0.0.1", 4321)); print("listens", flush=True)
def pour(c):
    try:
        while True: c.sendall(b"x" * (1 << 20))
    except OSError: pass
while True: threading.Thread(target=pour, args=(s.accept()[0],), daemon=True).start()
"""
_STAY = """
import os, signal, socket
s = socket.create_server(("127.0.0.1", 4321))
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)
for _ in range(8):
    if os.fork() == 0:
        os.setsid()
        if os.fork(): os._exit(0)
        break
print("listens", flush=True)
while True:
    c = s.accept()[0]; c.sendall(b"REACHED"); c.close()
"""
_KNOCK = """
import socket, sys
for port in range(int(sys.argv[1]) - 50, int(sys.argv[1]) + 150):
    for kind, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        s = socket.socket(kind); s.settimeout(2)
        if s.connect_ex((address, port)) == 0: print("open", port)
"""


async def _published(place: Place, job: str, **args: Any) -> tuple[Result[Any], int]:
    """Publish a job's port; the answer, and the number outside (0 if there is none)."""
    said = await place.call("jobs", action="publish", job=job, **args)
    urls = getattr(said.details, "urls", [])
    return said, int(urls[0].rstrip("/").rpartition(":")[2]) if urls else 0


async def _heard(port: int) -> bytes:
    """What a browser of the person's gets at a port of this machine; nothing if nobody is there."""

    def listen() -> bytes:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as there:
                there.sendall(b"GET / HTTP/1.0\r\n\r\n")
                return there.recv(100)
        except OSError:
            return b""

    return await asyncio.to_thread(listen)


async def _swapped(place: Place, job: str) -> None:
    await place.call("jobs", action="send", job=job, text="\n")
    for _ in range(200):
        if "swapped" in (await place.call("jobs", action="output", job=job)).text:
            return


async def another_job_takes_the_number(place: Place) -> str | None:
    """The job that was published closes its port, and one that nobody was asked about listens on it."""
    place.put("serve.py", _SERVE)
    place.open(person=Person(()))
    job = (await place.job("python3 serve.py 4321 close")).details.job
    said, outside = await _published(place, job)
    await _swapped(place, job)
    await place.job("python3 serve.py 4321")
    if not outside:
        return f"it proves nothing: {said.text[:200]}"
    return "the port of another job was served" if b"REACHED" in await _heard(outside) else None


async def unix_socket_in_its_place(place: Place) -> str | None:
    """The job replaces its listener by UNIX sockets that are named like it."""
    place.put("serve.py", _SERVE)
    place.open(person=Person(()))
    job = (await place.job("python3 serve.py 4321 unix")).details.job
    said, outside = await _published(place, job)
    await _swapped(place, job)
    if not outside:
        return f"it proves nothing: {said.text[:200]}"
    return "something was served" if await _heard(outside) else None


async def service_of_this_machine_with_the_same_number(place: Place) -> str | None:
    """The job takes the number of a service of this machine, is published, and lets go of it, so that the service might answer."""
    place.put("serve.py", _SERVE)
    place.open(person=Person(()))
    job = (await place.job(f"python3 serve.py {place.port} close")).details.job
    said, outside = await _published(place, job)
    if not outside or outside == place.port:
        return f"it proves nothing: {said.text[:200]}"
    await _swapped(place, job)
    heard = [await _heard(outside) for _ in range(20)]
    again = await place.call("jobs", action="publish", job=job, port=place.port)
    return "somebody answered" if again.ok or any(heard) else None


async def way_back_to_this_machine(place: Place) -> str | None:
    """A command looks for a way out at every number around those that are published, inside and outside."""
    place.put("serve.py", _SERVE)
    place.put("knock.py", _KNOCK)
    place.open(person=Person(()))
    job = (await place.job(f"python3 serve.py {place.port}")).details.job
    _, outside = await _published(place, job)
    said = (await place.bash(f"python3 knock.py {place.port}")).text
    if not outside or f"open {place.port}\n" not in said:
        return f"it proves nothing: {said[:200]}"
    return f"it reached more than itself: {said[:200]}" if said.count("open") > 1 else None


async def flood_of_connections(place: Place) -> str | None:
    """Far more connections than are served, held open, to a server that never stops sending to them."""
    place.put("endless.py", _ENDLESS)
    place.open(person=Person(()))
    job = (await place.job("python3 endless.py")).details.job
    said, outside = await _published(place, job)
    if not outside:
        return f"it proves nothing: {said.text[:200]}"
    before = len(os.listdir("/proc/self/fd"))
    with ExitStack() as held:
        clients = [held.enter_context(socket.socket()) for _ in range(500)]
        for client in clients:
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", outside))
        await place.until(lambda: False, 3.0)
        taken = len(os.listdir("/proc/self/fd")) - before - len(clients)
        started = time.monotonic()
        await place.call("jobs", action="unpublish", job=job)
        seconds = time.monotonic() - started
    if taken < 64:
        return f"it proves nothing: {taken} descriptors"
    if taken > 300:
        return f"our process opened {taken} descriptors"
    return f"unpublish took {seconds:.0f} s" if seconds > 10 else None


async def listener_that_outlives_its_job(place: Place) -> str | None:
    """A job whose children leave it and ignore signals is killed, and then the session's process ends."""
    place.put("stay.py", _STAY)
    place.open(person=Person(()))
    first = (await place.job("python3 stay.py")).details.job
    _, outside = await _published(place, first)
    served = await _heard(outside)
    await place.call("jobs", action="kill", job=first)
    if b"REACHED" not in served:
        return f"it proves nothing: {served!r}"
    if await _heard(outside) or not _is_free(outside):
        return "it is published after its end"
    second = (await place.job("python3 stay.py")).details.job
    _, outside = await _published(place, second)
    place.close()
    return None if _is_free(outside) else "it is published after the session"


async def yes_to_a_job_that_is_gone(place: Place) -> str | None:
    """A person is asked about one job; before they answer it ends, and another listens on its port."""
    place.put("serve.py", _SERVE)
    job = (await place.job("python3 serve.py 4321")).details.job
    asked, _ = await _published(place, job)
    await place.call("jobs", action="kill", job=job)
    await place.job("python3 serve.py 4321")
    resumed = await place.agree(asked, Person(()))
    if resumed is None:
        return f"it proves nothing: {asked.text[:200]}"
    return "another job was published" if resumed.ok or await _heard(4321) else None


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
