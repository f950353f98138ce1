"""Claude Code."""

from tests.e2e.clients.client import PROMPT, Client, Place


class ClaudeCode(Client):
    name = "Claude Code"
    package = "@anthropic-ai/claude-code-linux-x64"
    program = "claude"
    prefix = "mcp__handtools__"

    def launch(self, place: Place, model: str) -> tuple[list[str], dict[str, str]]:
        command, *args = place.server
        servers = place.write(
            "mcp.json",
            {"mcpServers": {"handtools": {"command": command, "args": args, "alwaysLoad": True}}},
        )
        # What a person would answer to our form.
        answer = {"hookEventName": "Elicitation", "action": "accept", "content": {"decision": "once"}}
        hook = place.write("answer.json", {"hookSpecificOutput": answer})
        settings = {"hooks": {"Elicitation": [{"hooks": [{"type": "command", "command": f"cat {hook}"}]}]}}
        place.write(".claude/settings.json", settings)
        words = ["-p", PROMPT, "--model", "m", "--mcp-config", str(servers), "--strict-mcp-config"]
        return [*words, "--allowedTools", "mcp__handtools", "--permission-mode", "bypassPermissions"], {
            "ANTHROPIC_BASE_URL": model,
            "ANTHROPIC_API_KEY": "x",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "IS_SANDBOX": "1",
        }
