"""opencode."""

from tests.e2e.clients.client import PROMPT, Client, Place


class Opencode(Client):
    name = "opencode"
    package = "opencode-linux-x64"
    program = "bin/opencode"
    prefix = "handtools_"
    config = ".config/opencode/opencode.json"

    def launch(self, place: Place, model: str) -> tuple[list[str], dict[str, str]]:
        options = {"baseURL": f"{model}/v1", "apiKey": "x"}
        served = {
            "name": "m",
            "attachment": True,
            "modalities": {"input": ["text", "image"], "output": ["text"]},
        }
        place.write(
            self.config,
            {
                "provider": {
                    "scripted": {
                        "npm": "@ai-sdk/openai-compatible",
                        "name": "scripted",
                        "options": options,
                        "models": {"m": served},
                    }
                },
                "model": "scripted/m",
                "mcp": {"handtools": {"type": "local", "command": place.server, "enabled": True}},
            },
        )
        return ["run", PROMPT], {}
