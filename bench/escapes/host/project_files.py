"""A project's own configuration in a place, and what commands see of private files under it."""

import json
from typing import Any

from bench.escapes.host.place import Place
from handtools.configuration import Configuration, load_configuration
from handtools.core.errors import HandtoolsError

LOOK = "cat .env deploy.pem .ssh/config secret/a; grep -r CANARY ."
"""A command that looks at everything private."""


def deny(*paths: str, **more: Any) -> str:
    """A table of a project's file: a rule that denies, as it seems."""
    rows = {"name": "x", "verdict": "deny", "reason": "r", "paths": list(paths)} | more
    return "[[rule]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in rows.items())


def begin_person(place: Place, person: str = 'excluded = ["secret"]\n') -> None:
    """Write the person's own configuration, and a file that only it hides."""
    folder = place.home / ".config" / "handtools"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(person)
    place.put("secret/a", f"{place.secrets['OTHER']}\n")


def load(place: Place) -> Configuration | None:
    """The configuration that the project's file leads to; None if it is refused."""
    try:
        return load_configuration(place.workspace)
    except HandtoolsError:
        return None


async def look_with(place: Place, *texts: str, file: str = ".handtools.toml") -> None:
    """Let a command look at everything private, under each text of the project's file."""
    place.begin()
    for text in texts:
        place.put(file, text)
        if (found := load(place)) is not None:
            place.open(policy=found.policy)
            await place.bash(LOOK)
