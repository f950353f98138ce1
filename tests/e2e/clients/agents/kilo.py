"""Kilo Code."""

from tests.e2e.clients.agents.opencode import Opencode
from tests.e2e.clients.client import PROMPT, Place


class Kilo(Opencode):
    """Grown from opencode, with its configuration in files of its own name."""

    name = "Kilo Code"
    package = "@kilocode/cli-linux-x64"
    program = "bin/kilo"
    config = ".config/kilo/kilo.json"

    def launch(self, place: Place, model: str) -> tuple[list[str], dict[str, str]]:
        super().launch(place, model)
        return ["run", "--auto", PROMPT], {"KILO_TELEMETRY_LEVEL": "off"}
