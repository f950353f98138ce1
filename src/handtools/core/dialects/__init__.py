"""Tables that map our tools to vendors' names, parameters and results; start with `dialect_tool`."""

from typing import Literal

DialectName = Literal[
    "anthropic",
    "anthropic_20250429",
    "anthropic_20250124",
    "agent_toolset_20260401",
    "openai",
    "openai_freeform",
    "openai_functions",
    "claude_code",
    "codex",
    "gemini_cli",
    "opencode",
    "pi",
]
