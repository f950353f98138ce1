"""HTTP: requests that are not as they should be, and addresses of resources that lead elsewhere."""

import json
from typing import Any

from bench.escapes.host.place import Place
from bench.escapes.host.server import Client, Site, serve

_PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})


def _request(client: Client, *headers: str, body: str = _PING, line: str = "POST /mcp HTTP/1.1") -> str:
    given = [line, *headers, f"Content-Length: {len(body)}", "Content-Type: application/json"]
    given += ["Accept: application/json, text/event-stream", "Connection: close"]
    return client.raw("\r\n".join(given) + f"\r\n\r\n{body}")


async def _served(place: Place) -> tuple[Site, Client, str, str]:
    site = await serve(place)
    client = site.attacker
    return site, client, f"Host: 127.0.0.1:{client.port}", f"Authorization: Bearer {client.token}"


async def odd_origins(place: Place) -> str | None:
    """Pages of other origins call, and origins are written so that no parser reads them."""
    site, client, host, token = await _served(place)
    origins = (
        "http://[", "http://evil.example", "null", "http://127.0.0.1:1", f"http://127.0.0.1:{client.port}@evil.example",
        f"http://127.0.0.1:{client.port}.evil.example", "file://", "http://\xff", "http://[::1", "", "//", "http://a:99999999",
    )  # fmt: skip
    for origin in origins:
        if _request(client, host, token, f"Origin: {origin}").startswith("HTTP/1.1 200") and origin:
            return f"a page of {origin!r} was answered"
    return site.check()


async def other_hosts(place: Place) -> str | None:
    """A name that leads to loopback is no name of ours; also twice, with a port, or as a whole address."""
    site, client, host, token = await _served(place)
    for name in (
        "evil.example",
        f"evil.example:{client.port}",
        "localhost.evil.example",
        "localhost@evil.example",
        "127.0.0.1.evil",
    ):
        if _request(client, f"Host: {name}", token).startswith("HTTP/1.1 200"):
            return f"the host {name!r} was answered"
    _request(client, host, "Host: evil.example", token)
    _request(client, token, line="POST http://evil.example/mcp HTTP/1.1")
    return site.check()


async def without_a_token(place: Place) -> str | None:
    """No token, the beginning of one, two of them, another scheme, in the address or in a cookie."""
    site, client, host, token = await _served(place)
    tried = (
        (),
        ("Authorization: Bearer x",),
        (token[:-1],),
        (token.replace("Bearer", "Basic"),),
        (f"Cookie: token={client.token}",),
        ("Authorization: Bearer ",),
        (f"{token} x",),
    )
    for headers in tried:
        for line in (
            "POST /mcp HTTP/1.1",
            f"POST /mcp?token={client.token} HTTP/1.1",
            "GET /metrics HTTP/1.1",
            "POST //mcp HTTP/1.1",
        ):
            if _request(client, host, *headers, line=line).startswith("HTTP/1.1 200"):
                return f"{line} was answered with {headers}"
    _request(client, host, "Authorization: Bearer \xff\xfe\xe9", token)
    return site.check()


async def odd_lengths(place: Place) -> str | None:
    """Lengths that are negative, twice, no number, or beside a transfer in chunks."""
    site, client, host, token = await _served(place)
    for length in (
        "-1",
        "99999999999",
        "\xb2",
        "1e3",
        "0x10",
        "+5",
        "5\r\nContent-Length: 6",
        "5\r\nTransfer-Encoding: chunked",
    ):
        client.raw(f"POST /mcp HTTP/1.1\r\n{host}\r\n{token}\r\nContent-Length: {length}\r\n\r\n0\r\n\r\n")
    chunk = "100000\r\n" + "a" * 0x100000 + "\r\n"
    client.raw(
        f"POST /mcp HTTP/1.1\r\n{host}\r\n{token}\r\nTransfer-Encoding: chunked\r\n\r\n{chunk * 9}0\r\n\r\n"
    )
    client.raw(f"POST /mcp HTTP/1.1\r\n{host}\r\n{token}\r\nX: {'a' * 70_000}\r\n\r\n")
    return site.check()


async def bodies_that_break_parsers(place: Place) -> str | None:
    """Bodies are deep, half characters, numbers beyond all measure, twice the same key, or no JSON."""
    site, client, _, _ = await _served(place)
    call = '{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"read","arguments":{{"path":{}}}}}}}'
    bodies = (
        '{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', '{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
        '{"jsonrpc":"2.0","id":' + "9" * 6000 + ',"method":"ping"}', '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
        '{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', "[" * 400_000, '{"a":' * 90_000, "", "null", "[]", "[" + ",".join([_PING] * 500) + "]",
        call.format('"\\ud800"'), call.format("[" * 900 + "]" * 900), call.format("[" * 30_000 + "]" * 30_000),
        call.format('"a\\u0000b"'), '{"jsonrpc":"2.0","id":1}', '{"jsonrpc":"2.0","id":{},"method":"ping"}', '{"jsonrpc":"2.0","id":1e400,"method":"ping"}',
    )  # fmt: skip
    for body in bodies:
        client.post(body.encode())
        client.post(body.encode(), mcp_protocol_version="2026-07-28")
    client.post(b"\xff\xfe\x00")
    client.post(_PING.encode(), mcp_session_id="\xff", mcp_protocol_version="\xe9")
    return site.check()


async def resources_that_lead_elsewhere(place: Place) -> str | None:
    """Addresses of resources with parents, escapes, other schemes and private names."""
    place.link("linked.txt", ".env")
    place.link("out", place.outside)
    site, client, _, _ = await _served(place)
    tails = (
        "../outside/secret.txt", "%2e%2e/outside/secret.txt", f"/{place.outside}/secret.txt", "..%2foutside%2fsecret.txt", ".env", "%2eenv",
        "src/../.env", "linked.txt", "out/secret.txt", "notes.txt%00", "output:x", "skill:../.env", ".ssh/config", "%252eenv", ".ENV", "\ud800",
    )  # fmt: skip
    for tail in tails:
        for head in (
            "handtools://file/",
            "handtools://output/",
            "handtools://file//",
            "file://",
            "HANDTOOLS://FILE/",
        ):
            client.ask("resources/read", uri=f"{head}{tail}")
    client.ask("resources/read", uri=f"handtools://output/..%2F..%2F{place.workspace.name}%2F.env")
    return site.check()


async def methods_with_odd_arguments(place: Place) -> str | None:
    """Our own methods get policies, ids and sessions that are none."""
    site, client, _, _ = await _served(place)
    wide: dict[str, Any] = {
        "rules": [{"name": "w", "verdict": "allow", "reason": "x", "paths": ["**"]}],
        "defaults": {"change": "allow", "run": "allow", "read": "allow"},
    }
    policies: tuple[dict[str, Any], ...] = (
        wide,
        {"rules": "x"},
        {"x": [[[[]]]]},
        {"block": ["bash"] * 9999},
        {"rules": [wide] * 99},
    )
    for policy in policies:
        for args in ({"path": ".env"}, {"path": ".vscode/made.json", "content": "evil"}):
            client.ask(
                "handtools/call", tool="write" if "content" in args else "read", args=args, policy=policy
            )
    for name in ("../../x", "\ud800", "a\0b", "x" * 100_000, "a/b", ""):
        client.ask(
            "handtools/call",
            tool="read",
            args={"path": "notes.txt"},
            id=name,
            session=name,
            turn=name,
            parent=name,
        )
        client.ask("handtools/resume", id=name, allow=True)
        client.call(
            "read",
            {"handtools/session": name, "handtools/call_id": name, "progressToken": name},
            path="notes.txt",
        )
    return site.check()
