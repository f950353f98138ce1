"""Codex."""

import json
import re

from tests.e2e.clients.client import PROMPT, Client, Place
from tests.e2e.clients.wires.shapes import Returned


class Codex(Client):
    name = "Codex"
    package = "@openai/codex"
    program = "vendor/x86_64-unknown-linux-musl/bin/codex"
    prefix = "mcp__handtools."

    def launch(self, place: Place, model: str) -> tuple[list[str], dict[str, str]]:
        command, *args = place.server
        place.write(
            ".codex/config.toml",
            f"""\
model = "m"
model_provider = "scripted"
approval_policy = "never"
[model_providers.scripted]
name = "scripted"
base_url = "{model}/v1"
wire_api = "responses"
[mcp_servers.handtools]
command = {json.dumps(command)}
args = {json.dumps(args)}
required = true
[projects."{place.work}"]
trust_level = "trusted"
""",
        )
        words = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT]
        return words, {}

    def unframed(self, returned: Returned) -> str:
        """It says first how long the call took."""
        return re.sub(r"^Wall time: [\d.]+ seconds\nOutput:\n", "", super().unframed(returned))
