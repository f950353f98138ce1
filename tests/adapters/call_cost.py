"""What an adapter adds to a call, as JSON for `python -m bench adapters`: `python -m tests.adapters.call_cost 31`.

A turn of many calls less a turn of one call is what calls cost, without the run around them. From that of our tool
the same of the SDK's own no-op tool and of the same calls in process are taken off, in each round.
"""

import asyncio
import gc
import json
import os
import statistics
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from handtools import Call, coding
from handtools.core import tool as schemas
from tests.adapters.drivers import Wanted

CALLS = 20


async def main(rounds: int) -> None:
    driver = import_module(f"tests.adapters.driver_{os.environ['HANDTOOLS_ADAPTER']}").Driver()
    added: dict[str, list[float]] = {"milliseconds": [], "processor_milliseconds": []}
    runs = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HANDTOOLS_STATE"] = f"{folder}/state"
        tempfile.tempdir = folder
        root = Path(folder, "work")
        root.mkdir()

        def wanted(tool: str, count: int) -> list[Wanted]:
            nonlocal runs
            runs += 1
            return [Wanted(tool, {}, f"call_{runs}_{number}") for number in range(count)]

        async with coding(root) as box:

            async def ours(count: int) -> None:
                await driver.run(box, *wanted("now", count))

            async def own(count: int) -> None:
                await driver.run_own(*wanted("noop", count))

            async def direct(count: int) -> None:
                await asyncio.gather(*(box.call(Call(tool="now", args={})) for _ in range(count)))

            for action in (ours, own, direct):
                await action(CALLS)
            made = schemas._schema_text.cache_info().misses
            for _ in range(rounds):
                cost = {action: await of_calls(action) for action in (own, ours, direct)}
                for clock, name in enumerate(added):
                    more = cost[ours][clock] - cost[own][clock] - cost[direct][clock]
                    added[name].append(more * 1000)
            again = schemas._schema_text.cache_info().misses - made
    medians = {name: statistics.median(values) for name, values in added.items()}
    print(json.dumps(medians | {"definitions_again": again}))


async def of_calls(action) -> tuple[float, float]:
    """Seconds of one call by the clock of the wall, and of the processor."""
    gc.collect()
    read = []
    for count in (1, CALLS):
        began = time.perf_counter(), time.process_time()
        await action(count)
        read.append((time.perf_counter() - began[0], time.process_time() - began[1]))
    one, many = read
    return (many[0] - one[0]) / (CALLS - 1), (many[1] - one[1]) / (CALLS - 1)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
