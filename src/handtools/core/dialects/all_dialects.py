"""The dialects by name."""

from collections.abc import Mapping

from handtools.core.dialects import DialectName
from handtools.core.dialects.anthropic import (
    AGENT_TOOLSET_20260401,
    ANTHROPIC,
    ANTHROPIC_20250124,
    ANTHROPIC_20250429,
)
from handtools.core.dialects.claude_code import CLAUDE_CODE
from handtools.core.dialects.codex import CODEX
from handtools.core.dialects.dialect_tool import Dialect
from handtools.core.dialects.gemini_cli import GEMINI_CLI
from handtools.core.dialects.openai import OPENAI, OPENAI_FREEFORM, OPENAI_FUNCTIONS
from handtools.core.dialects.opencode import OPENCODE
from handtools.core.dialects.pi import PI

DIALECTS: Mapping[DialectName, Dialect] = {
    "anthropic": ANTHROPIC,
    "anthropic_20250429": ANTHROPIC_20250429,
    "anthropic_20250124": ANTHROPIC_20250124,
    "agent_toolset_20260401": AGENT_TOOLSET_20260401,
    "openai": OPENAI,
    "openai_freeform": OPENAI_FREEFORM,
    "openai_functions": OPENAI_FUNCTIONS,
    "claude_code": CLAUDE_CODE,
    "codex": CODEX,
    "gemini_cli": GEMINI_CLI,
    "opencode": OPENCODE,
    "pi": PI,
}
