"""GitHub Copilot CLI."""

from tests.e2e.clients.client import PROMPT, Client, Place
from tests.e2e.clients.wires.shapes import Returned


class Copilot(Client):
    name = "Copilot CLI"
    package = "@github/copilot-linux-x64"
    program = "copilot"
    prefix = "handtools-"

    def launch(self, place: Place, model: str) -> tuple[list[str], dict[str, str]]:
        command, *args = place.server
        server = {"type": "local", "command": command, "args": args, "tools": ["*"]}
        place.write(".copilot/mcp-config.json", {"mcpServers": {"handtools": server}})
        return ["-p", PROMPT, "--allow-all-tools", "--no-auto-update", "--disable-builtin-mcps"], {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{model}/v1",
            "COPILOT_PROVIDER_API_KEY": "x",
            "COPILOT_MODEL": "gpt-5.4",
        }

    def unframed(self, returned: Returned) -> str:
        """A failure is told with the server's name."""
        return super().unframed(returned).removeprefix("MCP server 'handtools': ")
