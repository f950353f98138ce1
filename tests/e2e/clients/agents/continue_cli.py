"""Continue."""

import json

from tests.e2e.clients.client import PROMPT, Client, Place
from tests.e2e.clients.wires.shapes import Returned


class ContinueCli(Client):
    name = "Continue"
    package = "@continuedev/cli"
    program = "dist/cn.js"
    prefix = ""

    def launch(self, place: Place, model: str) -> tuple[list[str], dict[str, str]]:
        command, *args = place.server
        served = {"name": "m", "provider": "openai", "model": "m", "apiBase": f"{model}/v1", "apiKey": "x"}
        served |= {"roles": ["chat"], "capabilities": ["tool_use", "image_input"]}
        config = place.write(
            "config.yaml",
            json.dumps(
                {
                    "name": "scripted",
                    "version": "1.0.0",
                    "schema": "v1",
                    "models": [served],
                    "mcpServers": [{"name": "handtools", "command": command, "args": args}],
                }
            ),
        )
        return ["-p", PROMPT, "--config", str(config), "--auto"], {"CONTINUE_CLI_ENABLE_TELEMETRY": "0"}

    def unframed(self, returned: Returned) -> str:
        """The blocks of a result come as JSON."""
        blocks = json.loads(super().unframed(returned))
        return "\n".join(block["text"] for block in blocks if block["type"] == "text")
