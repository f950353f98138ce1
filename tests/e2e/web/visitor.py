"""A process that fetches what it is told, and then says how much memory it ever took: `… STATE PORT PATH…`."""

import json
import sys
from pathlib import Path

import anyio

from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.host.web.local_web import LocalWeb
from handtools.host.web.page_cache import PageCache
from handtools.host.web.request_limits import RateLimiter, ResponseLimits
from handtools.runtime.policy import Policy
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.tools.fetch import fetch


async def visits(state: str, port: str, paths: list[str]) -> list[dict]:
    web = LocalWeb(
        pages=PageCache(FolderBlobStore(Path(state))),
        limits=ResponseLimits(connect=2, silence=1, total=2),
        limiter=RateLimiter(burst=1_000),
        environment={},
    )
    told = []
    for path in paths:
        # A toolbox each: it is the memory of the machine's web that is looked at, not that of the record.
        box = memory_toolbox(tools=[fetch], web=web, policy=Policy(hosts=(f"127.0.0.1:{port}",)))
        result = await box.call("fetch", {"url": f"http://127.0.0.1:{port}{path}"})
        told.append({
            "path": path,
            "code": result.fault.code if result.fault else "ok",
            "text": result.text[:2_000],
            "hint": result.fault.hint if result.fault else "",
            "seconds": result.usage.seconds,
            "kept": bool(result.details and result.details.kept),
        })  # fmt: skip
    return told


def main(state: str, port: str, *paths: str) -> None:
    told = anyio.run(visits, state, port, list(paths))
    peak = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    print(json.dumps({"visits": told, "peak_kb": int(peak.split()[1])}))


if __name__ == "__main__":
    main(*sys.argv[1:])
