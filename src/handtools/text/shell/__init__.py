"""Bash scripts analysed without running them: their plain commands, or the reason why those can't be known.

Only a help for rules and questions: what keeps a command inside is the sandbox, never the reading of its text.
Start with `script_commands.read_script`.
"""

from handtools.text.shell.script_commands import Script, read_script
from handtools.text.shell.word_unquoting import CommandWords, OpaqueScript, quote_words

__all__ = ["CommandWords", "OpaqueScript", "Script", "quote_words", "read_script"]
