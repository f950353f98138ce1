"""Cline."""

import json

from tests.e2e.clients.client import PROMPT, Client, Place
from tests.e2e.clients.wires.shapes import Returned


class Cline(Client):
    name = "Cline"
    package = "@cline/cli-linux-x64"
    program = "bin/cline"
    prefix = "handtools__"

    def launch(self, place: Place, model: str) -> tuple[list[str], dict[str, str]]:
        command, *args = place.server
        # A server that is slow to start is given up otherwise, in silence.
        servers = {
            "handtools": {"transport": {"type": "stdio", "command": command, "args": args}, "timeout": 300}
        }
        place.write(".cline/data/settings/cline_mcp_settings.json", {"mcpServers": servers})
        provider = {"provider": "openai-compatible", "apiKey": "x", "model": "m", "baseUrl": f"{model}/v1"}
        place.write(
            ".cline/data/settings/providers.json",
            {
                "version": 1,
                "lastUsedProvider": "openai-compatible",
                "modes": {},
                "providers": {
                    "openai-compatible": {
                        "settings": provider,
                        "updatedAt": "2026-01-01T00:00:00.000Z",
                        "tokenSource": "manual",
                    }
                },
            },
        )
        # Otherwise a daemon is started that outlives the session.
        return ["-P", "openai-compatible", "-m", "m", PROMPT], {"CLINE_SESSION_BACKEND_MODE": "local"}

    def unframed(self, returned: Returned) -> str:
        """The whole result comes as JSON."""
        blocks = json.loads(super().unframed(returned))["content"]
        return "\n".join(block["text"] for block in blocks if block["type"] == "text")
