"""The first lines of the command: the MCP server is started without loading what only people need."""

import sys


def main() -> None:
    """Run what was typed; `handtools mcp [FOLDER]` by the shortest way, as clients start it."""
    words = sys.argv[1:]
    if words[:1] == ["mcp"] and len(words) <= 2 and not any(word.startswith("-") for word in words):
        from handtools.cli.serving import serve_folder

        serve_folder(words[1] if len(words) > 1 else ".")
        return
    from handtools.cli.main import main as run

    run()
