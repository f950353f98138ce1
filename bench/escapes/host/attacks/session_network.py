"""The network that the commands and jobs of a session share: out of it, or over to somebody else's."""

import re
from typing import Any

from bench.escapes.host.place import Person, Place
from handtools import Call

_SERVE = """
import socket, sys
s = socket.socket(socket.AF_UNIX if sys.argv[1] == "abstract" else socket.AF_INET)
s.bind("\\0shared" if sys.argv[1] == "abstract" else ("0.0.0.0", 4321))
s.listen(); print("listens", flush=True)
while True: s.accept()[0].sendall(b"REACHED")
"""
_KNOCK = """
import socket
for kind, address in ((socket.AF_UNIX, "\\0shared"), (socket.AF_INET, ("127.0.0.1", 4321)), (socket.AF_INET6, ("::1", 4321))):
    s = socket.socket(kind); s.settimeout(3)
    try: s.connect(address); print(s.recv(9))
    except OSError as error: print(error)
"""
_PROXIES = """
import base64, glob, os, re, socket, sys
ports = {int(row.split()[1].split(":")[1], 16) for row in open("/proc/net/tcp") if " 0A " in row}
words = {"", "handtools", ":", "handtools:", os.environ.get("http_proxy", "")}
for path in glob.glob("/proc/[0-9]*/environ"):
    try: words |= set(re.findall(r"handtools:\\w+", open(path, errors="replace").read()))
    except OSError: pass
for port in ports:
    for word in words:
        field = f"Proxy-Authorization: Basic {base64.b64encode(word.encode()).decode()}\\r\\n"
        for request in (
            f"CONNECT 127.0.0.1:{sys.argv[1]} HTTP/1.1\\r\\n{field}\\r\\n",
            f"GET http://127.0.0.1:{sys.argv[1]}/ HTTP/1.1\\r\\n{field}\\r\\n",
        ):
            with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
                s.sendall(request.encode()); print(port, s.recv(60))
    with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
        s.sendall(b"\\x05\\x01\\x00"); print(s.recv(2))
        s.sendall(b"\\x05\\x01\\x00\\x01\\x7f\\x00\\x00\\x01" + int(sys.argv[1]).to_bytes(2, "big")); print(s.recv(10))
print(len(ports), "proxies")
"""
_RELAY = """
import os, socket, sys, threading
from urllib.parse import urlsplit
proxy = urlsplit(os.environ["http_proxy"])
if os.fork(): sys.exit()
os.setsid()
s = socket.create_server(("127.0.0.1", 4321)); print("relays", flush=True)
if os.fork(): os._exit(0)
while True:
    there = s.accept()[0]; out = socket.create_connection(("127.0.0.1", proxy.port))
    out.sendall(there.recv(9999)); there.sendall(out.recv(9999))
"""
_OUT = """
import ctypes, fcntl, os, socket, struct, sys
libc, port = ctypes.CDLL(None, use_errno=True), int(sys.argv[1])
def knock():
    try: socket.create_connection(("127.0.0.1", port), timeout=2)
    except OSError as error: print(error)
knock()
for path in (f"/proc/{pid}/ns/{kind}" for pid in filter(str.isdigit, os.listdir("/proc")) for kind in ("user", "net")):
    try: print(path, libc.setns(os.open(path, os.O_RDONLY), 0), ctypes.get_errno())
    except OSError as error: print(error)
    knock()
for fd in range(3, 64):
    if libc.setns(fd, 0) == 0: print("joined", fd); knock()
for flags in (0x40000000, 0x50000000, 0x10000000): print(libc.unshare(flags), ctypes.get_errno())
s = socket.socket()
for name in (b"lo", b"eth0"):
    try: fcntl.ioctl(s, 0x8914, struct.pack("16sH22x", name, 1)); print("CHANGED", name)
    except OSError as error: print(error)
for path in ("ipv4/ip_forward", "ipv4/conf/all/route_localnet", "ipv4/ip_unprivileged_port_start"):
    try: open(f"/proc/sys/net/{path}", "r+").write("1"); print("CHANGED", path)
    except OSError as error: print(error)
"""


async def _bash(place: Place, command: str, session: str, **args: Any) -> str:
    return (await place.call(Call(tool="bash", args={"command": command, **args}, session=session))).text


async def server_of_another_session(place: Place) -> str | None:
    """A session knocks at the ports and abstract sockets of another session of the same workspace."""
    place.put("serve.py", _SERVE)
    place.put("knock.py", _KNOCK)
    for kind in ("inet", "abstract"):
        await place.job(f"python3 serve.py {kind}", "one")
    near = await _bash(place, "python3 knock.py", "one")
    far = await _bash(place, "python3 knock.py", "two")
    assert near.count("REACHED") == 2, near
    return "it reached a server of another session" if "REACHED" in far else None


async def hosts_of_a_job_that_was_approved(place: Place) -> str | None:
    """A job may reach a host; a command of its session, which may not, finds the job's proxy and asks it."""
    place.put("proxies.py", _PROXIES)
    place.open(person=Person(()))
    await place.job("echo waits; sleep 60", "s", hosts=[f"127.0.0.1:{place.port}"])
    said = await _bash(place, f"python3 proxies.py {place.port}", "s")
    return None if "1 proxies" in said else f"it proves nothing: {said[:200]}"


async def hosts_by_the_proxy_of_another_list(place: Place) -> str | None:
    """As before, by a command that has a proxy of its own, for another host, and its password."""
    place.put("proxies.py", _PROXIES)
    place.open(person=Person(()))
    await place.job("echo waits; sleep 60", "s", hosts=[f"127.0.0.1:{place.port}"])
    said = await _bash(place, f"python3 proxies.py {place.port}", "s", hosts=["other.example"])
    return None if "2 proxies" in said else f"it proves nothing: {said[:200]}"


async def relay_that_stays_behind(place: Place) -> str | None:
    """A command that may reach a host leaves a relay to its proxy behind, for those that come later."""
    place.put("relay.py", _RELAY)
    place.put("knock.py", _KNOCK)
    place.open(person=Person(()))
    said = await _bash(place, "python3 relay.py; sleep 0.3", "s", hosts=[f"127.0.0.1:{place.port}"])
    later = await _bash(place, "python3 knock.py; grep -c ' 0A ' /proc/net/tcp", "s")
    if "relays" not in said:
        return f"it proves nothing: {said[:200]}"
    return None if re.search(r"^0$", later, re.MULTILINE) else f"something still listens: {later[:200]}"


async def out_of_the_shared_network(place: Place) -> str | None:
    """Join, make or change namespaces and interfaces, in a job and in a command of its session."""
    place.put("out.py", _OUT)
    await place.job(f"python3 out.py {place.port}; sleep 60", "s")
    said = await _bash(place, f"python3 out.py {place.port}", "s")
    return "it changed the network that the session shares" if "CHANGED" in said else None
