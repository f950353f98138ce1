"""The process in which a person says yes: `python -m tests.adapters.new_process FOLDER PAUSED`."""

import json
import os
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import anyio

from handtools import Policy, Rule, coding

ASK = Policy(rules=(Rule("ask", "ask", "Look first.", effects=frozenset({"change"})),))
RUN = Policy(defaults={"run": "allow"})
"""Commands run without a question, also where nothing confines them."""


async def main(folder: str, paused: str) -> None:
    driver = import_module(f"tests.adapters.driver_{os.environ['HANDTOOLS_ADAPTER']}").Driver()
    async with coding(folder, policy=ASK) as box:
        said = await driver.answer(box, driver.load(Path(paused).read_bytes()), allow=True)
        waiting = len(await box.waiting())
    print(json.dumps({"said": [asdict(one) for one in said], "waiting": waiting}))


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
