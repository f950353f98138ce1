"""Shelling: a bash script as the plain commands it consists of, or the reason why it is not that simple.

Only a help for rules and questions: what keeps a command inside is the sandbox, never the reading of its text.
"""

from handtools.text.shelling.scripts import Script, read_script
from handtools.text.shelling.words import Opaque, Words, quoted

__all__ = ["Opaque", "Script", "Words", "quoted", "read_script"]
