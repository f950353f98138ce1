"""Gemini CLI."""

import json
import re

from tests.e2e.clients.client import PROMPT, Client, Place
from tests.e2e.clients.wires.shapes import Returned


class GeminiCli(Client):
    name = "Gemini CLI"
    package = "@google/gemini-cli"
    program = "bundle/gemini.js"
    prefix = "mcp_handtools_"

    def launch(self, place: Place, model: str) -> tuple[list[str], dict[str, str]]:
        command, *args = place.server
        place.write(
            ".gemini/settings.json",
            {
                "mcpServers": {"handtools": {"command": command, "args": args, "trust": True}},
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "general": {"enableAutoUpdate": False},
                "privacy": {"usageStatisticsEnabled": False},
            },
        )
        return ["-p", PROMPT, "-m", "gemini-2.5-pro", "--approval-mode", "yolo", "--skip-trust"], {
            "GEMINI_API_KEY": "x",
            "GOOGLE_GEMINI_BASE_URL": model,
        }

    def unframed(self, returned: Returned) -> str:
        """Text stands between marks; a failure is told with the call and the whole result as JSON."""
        seen = super().unframed(returned)
        if returned.error:
            told = json.loads(seen.partition(" with response: ")[2])
            return str(told[0]["functionResponse"]["response"]["content"][0]["text"])
        return re.sub(r"^<untrusted_context>\n(.*)\n</untrusted_context>$", r"\1", seen, flags=re.DOTALL)
