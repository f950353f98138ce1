"""Qwen Code."""

import json

from tests.e2e.clients.client import PROMPT, Client, Place
from tests.e2e.clients.wires.shapes import Returned


class QwenCode(Client):
    name = "Qwen Code"
    package = "@qwen-code/qwen-code"
    program = "cli-entry.js"
    prefix = "mcp__handtools__"

    def launch(self, place: Place, model: str) -> tuple[list[str], dict[str, str]]:
        command, *args = place.server
        place.write(
            ".qwen/settings.json",
            {
                "mcpServers": {
                    "handtools": {"command": command, "args": args, "trust": True, "alwaysLoadTools": True}
                },
                "general": {"enableAutoUpdate": False},
                "privacy": {"usageStatisticsEnabled": False},
            },
        )
        return [PROMPT, "--auth-type", "openai", "-m", "qwen3-vl-plus", "--approval-mode", "yolo"], {
            "OPENAI_API_KEY": "x",
            "OPENAI_BASE_URL": f"{model}/v1",
        }

    def unframed(self, returned: Returned) -> str:
        """A failure is told with the call and the whole result as JSON."""
        seen = super().unframed(returned)
        if not seen.startswith("MCP tool "):
            return seen
        told = json.loads(seen.partition(" with response: ")[2])
        return str(told[0]["functionResponse"]["response"]["content"][0]["text"])
