"""Static analysis of bash scripts: their plain commands, or the reason why these can't be known.

This only supports policy rules and approval requests: commands are confined by the sandbox, never by this
analysis. Start with `script_commands.read_script`.
"""

from handtools.text.shell.script_commands import Script, read_script
from handtools.text.shell.word_unquoting import CommandWords, OpaqueScript, quote_words

__all__ = ["CommandWords", "OpaqueScript", "Script", "quote_words", "read_script"]
