"""Analysis of a bash script: its plain commands, or why it is opaque, and its dangers in words.

The syntax tree is not trusted, because it may differ from bash's own parsing. Words, operators and comments
must cover the whole text, and each word is parsed again by our own rules. If the two disagree, the script
is opaque.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Literal

from handtools.text.shell.hazards import find_hazards
from handtools.text.shell.word_unquoting import (
    CommandWords,
    OpaqueScript,
    expand_one_brace_pair,
    unquote_program_word,
    unquote_word,
    without_ansi_quotes,
)
from handtools.text.shell.wrapper_programs import (
    SHELL_PROGRAMS,
    inner_commands,
    possible_inner_commands,
    program_basename,
)

if TYPE_CHECKING:
    from ast_grep_py import SgNode


MAX_SCRIPT_CHARS = 12_000
"""Length in characters of the longest script that is analysed, which may take a second."""
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]")
_GAP = re.compile(r"(?:[ \t]|(?<=[ \t])\\\n)*")
_BREAK = re.compile(r"(?:[ \t\n]|(?<=[ \t])\\\n)*")
_HARMLESS = re.compile(
    r"[0-9]?>>?[ \t]*/dev/null|&>>?[ \t]*/dev/null|[0-9]?>&[ \t]*[012]|[0-9]?<[ \t]*/dev/null"
)
_WORDS = frozenset({"word", "number", "string", "raw_string", "concatenation"})
_JOINTS = frozenset({"&&", "||", ";", "|", "\n"})
_GROUPS = frozenset({"program", "list", "pipeline", "redirected_statement"})
_REASONS = {
    "&": "it runs in the background",
    "|&": "it pipes stderr",
    "subshell": "it has a subshell",
    "compound_statement": "it groups commands",
    "negated_command": "it negates an exit code",
    "function_definition": "it defines a function",
    "declaration_command": "it sets variables",
    "unset_command": "it unsets variables",
    "variable_assignment": "it sets a variable",
    "variable_assignments": "it sets variables",
    "command_substitution": "it has a command substitution",
    "process_substitution": "it has a process substitution",
    "heredoc_redirect": "it has a here-document",
    "herestring_redirect": "it has a here-string",
    "test_command": "it has a shell test",
    "if_statement": "it has control flow",
    "for_statement": "it has control flow",
    "c_style_for_statement": "it has control flow",
    "while_statement": "it has control flow",
    "case_statement": "it has control flow",
    "ERROR": "it can't be parsed as bash",
}

TokenKind = Literal["word", "joint", "redirect", "comment"]


@dataclass(slots=True)
class _Token:
    kind: TokenKind
    start: int
    end: int


@dataclass(slots=True)
class _Reading:
    text: str
    tokens: list[_Token] = field(default_factory=list)
    commands: list[list[str]] = field(default_factory=list)
    """The words of each command of the script, still quoted."""
    starts: set[int] = field(default_factory=set)
    """Offsets at which commands begin; there must be a separator between them."""


def parse_bash(text: str) -> "SgNode":
    """Parse a bash script into a syntax tree.

    Raises `OpaqueScript` if it is too long or has unsafe characters.
    """
    if len(text) > MAX_SCRIPT_CHARS:
        raise OpaqueScript(f"it is longer than {MAX_SCRIPT_CHARS:,} characters")
    if _CONTROL.search(text):
        raise OpaqueScript("it contains control characters")
    if "{" in text and _ASTRAL.search(text):
        # For such a character, the grammar reads beyond the end of a table, which crashes the process.
        raise OpaqueScript("it contains a brace and a character beyond U+FFFF")
    from ast_grep_py import SgRoot

    return SgRoot(text, "bash").root()


def plain_commands(text: str, root: "SgNode") -> tuple[CommandWords, ...]:
    """Return the commands of a plain script as tuples of words, in order.

    Raises `OpaqueScript` for any other script.
    """
    reading = _Reading(text)
    _collect_tokens(root, reading)
    reading.tokens.sort(key=lambda token: token.start)
    _check_tokens_cover_text(reading)
    return tuple(
        (unquote_program_word(words[0]), *map(unquote_word, words[1:])) for words in reading.commands
    )


def _collect_tokens(root: "SgNode", reading: _Reading) -> None:
    """Collect the tokens and commands of the syntax tree, without recursion; raises `OpaqueScript`."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        kind = node.kind()
        if kind in _GROUPS:
            children = node.children()
            if kind == "redirected_statement" and children[0].kind() == "file_redirect":
                raise OpaqueScript("it redirects without a program")
            waiting += reversed(children)
        elif kind == "command":
            _collect_command(node, reading)
        elif kind in _JOINTS:
            _append_token(node, "joint", reading)
        elif kind == "comment":
            _append_token(node, "comment", reading)
        elif kind == "file_redirect":
            _collect_redirect(node, reading)
        else:
            raise OpaqueScript(_REASONS.get(kind, f"it contains: {kind.replace('_', ' ')}"))


def _collect_command(node: "SgNode", reading: _Reading) -> None:
    words: list[str] = []
    for child in node.children():
        kind = child.kind()
        if kind == "command_name" or kind in _WORDS:
            if not words:
                reading.starts.add(child.range().start.index)
            words.append(child.text())
            _append_token(child, "word", reading)
        elif kind == "file_redirect":
            _collect_redirect(child, reading)
        elif kind in {
            "simple_expansion",
            "expansion",
            "ansi_c_string",
            "translated_string",
            "brace_expression",
        }:
            raise OpaqueScript(f"the shell expands `{child.text()[:40]}`")
        else:
            raise OpaqueScript(_REASONS.get(kind, f"it contains: {kind.replace('_', ' ')}"))
    if not words:
        raise OpaqueScript("it has no program")
    reading.commands.append(words)


def _collect_redirect(node: "SgNode", reading: _Reading) -> None:
    text = node.text()
    if not _HARMLESS.fullmatch(text):
        raise OpaqueScript(f"`{text[:40]}` redirects to or from a file")
    _append_token(node, "redirect", reading)


def _append_token(node: "SgNode", kind: TokenKind, reading: _Reading) -> None:
    span = node.range()
    if span.start.index >= span.end.index:
        raise OpaqueScript("it can't be parsed as bash")
    reading.tokens.append(_Token(kind, span.start.index, span.end.index))


def _check_tokens_cover_text(reading: _Reading) -> None:
    """Raise `OpaqueScript` unless the tokens cover the whole text and are separated as in the shell."""
    previous_token: _Token | None = None
    for token in reading.tokens:
        gap = reading.text[previous_token.end if previous_token else 0 : token.start]
        begins = token.start in reading.starts or token.kind in {"joint", "comment"}
        if not (_BREAK if begins else _GAP).fullmatch(gap):
            raise OpaqueScript("its syntax tree does not match its text")
        if previous_token is not None and not _is_separate_token(previous_token, token, gap, reading):
            raise OpaqueScript("its syntax tree does not match its text")
        previous_token = token
    if not _BREAK.fullmatch(reading.text[previous_token.end if previous_token else 0 :]):
        raise OpaqueScript("its syntax tree does not match its text")


def _is_separate_token(previous_token: _Token, token: _Token, gap: str, reading: _Reading) -> bool:
    """Whether two neighbouring tokens are separate tokens to the shell too."""
    if previous_token.kind == "comment":
        return "\n" in gap or reading.text[token.start] == "\n"
    if token.start in reading.starts:
        return previous_token.kind == "joint" or "\n" in gap.replace("\\\n", "")
    if "joint" in {previous_token.kind, token.kind}:
        return True
    if token.kind == "redirect" and not gap:
        return not reading.text[previous_token.start : previous_token.end].isdigit()
    return bool(gap)


def all_nodes(root: "SgNode") -> Iterator["SgNode"]:
    """Yield all nodes of a syntax tree, parents before children."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children())


_MAX_SCRIPT_DEPTH = 4
_MAX_FOUND_COMMANDS = 5_000
_DANGEROUS_PROGRAMS = {
    "rm": "deletes", "rmdir": "deletes", "shred": "destroys", "dd": "writes raw bytes", "mkfs": "formats",
    "sudo": "acts as another user", "doas": "acts as another user", "su": "acts as another user",
    "chmod": "changes permissions", "chown": "changes owners", "kill": "kills processes",
    "pkill": "kills processes", "killall": "kills processes", "curl": "uses the network",
    "wget": "uses the network",
    "ssh": "connects to another machine", "scp": "connects to another machine", "rsync": "copies elsewhere",
    "nc": "uses the network", "eval": "runs text as code", "crontab": "schedules commands",
    "truncate": "truncates files", "mount": "mounts", "reboot": "reboots the machine",
    "shutdown": "shuts down the machine",
}  # fmt: skip
_TAKES_SCRIPTS = SHELL_PROGRAMS | {
    "eval", "trap", "su", "ssh", "watch", "xargs", "sudo", "env", "script", "find", "tmux", "screen", "flock",
    "mapfile", "readarray", "compgen", "complete", "parallel", "vim", "vi", "nvim", "ex",
}  # fmt: skip
_HOLDS_SCRIPTS = {"alias": "=", "git": "=!"}
"""Programs that store a script under a name (`alias x=…`), and the text between name and script."""
_NODES_BESIDE_WORDS = frozenset({
    "file_redirect", "herestring_redirect", "heredoc_redirect", "variable_assignment", "comment"
})  # fmt: skip
"""Kinds of nodes that occur among the words of a command but are not words."""
_EXPANDED_NAME = re.compile(r"[$`*?\[{]")
"""A program name with one of these characters is expanded by the shell at run time."""


@dataclass(frozen=True, slots=True)
class Script:
    """The analysis of a bash script: its commands, whether it is opaque, and its dangers."""

    text: str
    parts: tuple[CommandWords, ...]
    """Every command that the script runs, including those inside wrappers; empty if it is opaque."""
    opaque: str
    """Why the commands can't be known for certain; empty if they can."""
    found: tuple[CommandWords, ...]
    """Every command found at any depth. Can be used to find dangers, never to rule them out."""
    dangers: tuple[str, ...]
    """Warnings about what the script does, for the user who approves it."""
    seen: bool = True
    """Whether every command was found: the script is not too long, was parsed and names its programs."""


@lru_cache(maxsize=64)
def read_script(text: str) -> Script:
    """Analyse a bash script; never raises, an unreadable script is opaque."""
    root: SgNode | None = None
    try:
        # Parse only once: a script can be written to make parsing slow.
        root = parse_bash(text)
        outer = plain_commands(text, root)
        parts = tuple(each for words in outer for each in (words, *inner_commands(words)))
    except OpaqueScript as reason:
        # Bash joins continued lines before it parses them, so search the script both as written and joined.
        joined = text.replace("\\\n", "")
        every = chain(_commands_in_tree(root, 0), _commands_in_text(joined, 0) if joined != text else ())
        found = tuple(islice(every, _MAX_FOUND_COMMANDS + 1))
        seen = (
            len(found) <= _MAX_FOUND_COMMANDS
            and _is_parsed_without_errors(root)
            and not any(map(_has_unknown_program, found))
        )
        return Script(text, (), f"{reason}.", found, _script_dangers(root, found), seen=seen)
    found = tuple(
        islice(
            (each for words in parts for each in _command_and_inner_commands(words, 0)), _MAX_FOUND_COMMANDS
        )
    )
    return Script(text, parts, "", found, _script_dangers(root, parts))


def _is_parsed_without_errors(root: "SgNode | None") -> bool:
    """Whether a script was parsed without syntax errors."""
    return root is not None and all(node.kind() != "ERROR" for node in all_nodes(root))


def _has_unknown_program(words: CommandWords) -> bool:
    """Whether a command's program is unknown: its name is expanded, or it is a shell that reads stdin."""
    from_input = program_basename(words[0]) in SHELL_PROGRAMS and all(
        word.startswith("-") for word in words[1:]
    )
    return _EXPANDED_NAME.search(words[0]) is not None or (from_input and "-c" not in words)


def _commands_in_text(text: str, depth: int) -> Iterator[CommandWords]:
    with suppress(OpaqueScript):
        yield from _commands_in_tree(parse_bash(text), depth)


def _commands_in_tree(root: "SgNode | None", depth: int) -> Iterator[CommandWords]:
    for node in all_nodes(root) if root is not None else ():
        if node.kind() == "command":
            words = tuple(
                word for child in node.children() if _is_word_node(child) for word in _possible_words(child)
            )
            if words:
                yield from _command_and_inner_commands(words, depth)


def _is_word_node(node: "SgNode") -> bool:
    return node.is_named() and node.kind() not in _NODES_BESIDE_WORDS


def _possible_words(node: "SgNode") -> list[str]:
    """Return the words that a node expands to if they can be known; otherwise its text."""
    text = without_ansi_quotes(node.text())
    try:
        return [unquote_word(text)]
    except OpaqueScript:
        return expand_one_brace_pair(text) or [text]


def _command_and_inner_commands(words: CommandWords, depth: int) -> Iterator[CommandWords]:
    """Yield a command, the commands that it might run, and the commands in scripts among its words."""
    yield words
    if depth >= _MAX_SCRIPT_DEPTH:
        return
    for guess in possible_inner_commands(words):
        yield from (
            _command_and_inner_commands(guess, depth + 1)
            if program_basename(guess[0]) in _TAKES_SCRIPTS
            else (guess,)
        )
    held = _HOLDS_SCRIPTS.get(program_basename(words[0]))
    for word in words[1:]:
        if held is not None and held in word:
            yield from _commands_in_text(word.partition(held)[2], depth + 1)
    if program_basename(words[0]) in _TAKES_SCRIPTS:
        for word in words[1:]:
            if " " in word or "\n" in word:
                yield from _commands_in_text(word, depth + 1)


def _script_dangers(root: "SgNode | None", found: tuple[CommandWords, ...]) -> tuple[str, ...]:
    told = [
        f"`{program_basename(words[0])}` {_DANGEROUS_PROGRAMS[program_basename(words[0])]}"
        for words in found
        if program_basename(words[0]) in _DANGEROUS_PROGRAMS
    ]
    told += [f"{hazard} (`{words[0]}`)" for words in found for hazard in find_hazards(words)]
    return tuple(dict.fromkeys([*_redirection_warnings(root), *told]))[:12]


def _redirection_warnings(root: "SgNode | None") -> list[str]:
    """Return a warning for each file that a redirection of the script writes."""
    targets = []
    for node in all_nodes(root) if root is not None else ():
        if node.kind() == "file_redirect" and ">" in node.text():
            words = [
                child for child in node.children() if child.is_named() and child.kind() != "file_descriptor"
            ]
            name = words[-1].text() if words else ""
            if name and name != "/dev/null" and not name.isdigit():
                targets.append(f"writes `{name}`")
    return targets


_DECLARED_FUNCTION = re.compile(r"^(?:function )?(\S+) \(\)", re.MULTILINE)
_DECLARED_ALIAS = re.compile(r"^alias (?:-- )?([^=\s]+)=", re.MULTILINE)
_STEERING_VARIABLE = re.compile(
    r"PATH|CDPATH|IFS|ENV|BASH_\w*|PS4|PROMPT_COMMAND|SHELL\w*|GLOBIGNORE|HOME|TMPDIR|EDITOR|VISUAL|BROWSER"
    r"|LD_\w+|DYLD_\w+|GCONV_PATH|LOCPATH|PYTHON\w*|PERL\w*|RUBY\w*|NODE_\w+|npm_\w+|NPM_\w+|PIP_\w+|UV_\w+"
    r"|GIT_\w+|SSH_\w+|JAVA_\w+|_JAVA_OPTIONS|JDK_\w+|MAVEN_\w+|GRADLE_\w+|CARGO\w*|RUST\w*|GO[A-Z]+|CC|CXX|AR"
    r"|MAKE\w*|LESS\w*|PAGER|MANPAGER|XDG_\w+|\w*FLAGS|\w*_OPTIONS|\w*_OPTS|\w*PRELOAD\w*",
)
_SECRET_VARIABLE = re.compile(r"TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)


def function_and_alias_names(functions: str, aliases: str) -> frozenset[str]:
    """Extract the names of functions and aliases from the output of bash's `declare -f` and `alias`."""
    return frozenset((*_DECLARED_FUNCTION.findall(functions), *_DECLARED_ALIAS.findall(aliases)))


def script_runs_any_named_command(script: Script, names: frozenset[str]) -> bool:
    """Whether a script runs one of these names as a command; if it is opaque, True if there are any names."""
    if not script.parts:
        return bool(names)
    return any(words[0] in names for words in script.parts)


def variables_steering_programs(exports: Iterable[str]) -> list[str]:
    """Return those environment variables that control which programs run or load, such as `PATH`."""
    return sorted(name for name in exports if _STEERING_VARIABLE.fullmatch(name))


def is_secret_name(name: str) -> bool:
    """Whether a variable's name suggests a secret value, such as a token, key or password."""
    return _SECRET_VARIABLE.search(name) is not None
