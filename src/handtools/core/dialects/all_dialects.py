"""The dialects by name. ADR 212."""

from collections.abc import Mapping
from typing import Literal

from handtools.core.dialects.anthropic import (
    AGENT_TOOLSET_20260401,
    ANTHROPIC,
    ANTHROPIC_20250124,
    ANTHROPIC_20250429,
)
from handtools.core.dialects.dialect_tool import Dialect

DialectName = Literal["anthropic", "anthropic_20250429", "anthropic_20250124", "agent_toolset_20260401"]
DIALECTS: Mapping[DialectName, Dialect] = {
    "anthropic": ANTHROPIC,
    "anthropic_20250429": ANTHROPIC_20250429,
    "anthropic_20250124": ANTHROPIC_20250124,
    "agent_toolset_20260401": AGENT_TOOLSET_20260401,
}
