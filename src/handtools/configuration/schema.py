"""The schema of every configuration file: keys, values, what they mean, and what a project may do with each.

The JSON schema for editors, `handtools config`, the page of settings and the reading of files are made from it.
ADR 232.
"""

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from handtools.core.effects import EFFECT_KINDS, EffectKind
from handtools.core.errors import HostError, UsageError
from handtools.host.home_folders import state_root
from handtools.host.language.formatters import FORMATTERS
from handtools.host.language.servers import LANGUAGE_SERVERS
from handtools.host.sandbox.path_program_folders import is_too_broad_to_show
from handtools.runtime.policy import ToolSet
from handtools.runtime.policy.rules import Rule, Verdict
from handtools.text.paths import similar_names
from handtools.text.search.glob import BadGlob, PathGlobs
from handtools.text.toml_key_lines import KeyPath, toml_key_lines
from handtools.text.toml_text import parse_toml
from handtools.text.web.host_access import BadHostEntry, parse_host_list
from handtools.text.web.port_ranges import BadPort, parse_port_ranges

PresetLiteral = Literal["reading", "coding", "everything"]

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([KMGT])(?:i?B)?|B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROXY = re.compile(r"http://(?:[^/@\s]+@)?(?:\[[0-9A-Fa-f:.]+\]|[^/@:\s\[\]]+):\d{1,5}/?", re.ASCII)
_MOST_AMOUNT = 1 << 62


class KeyFacts(NamedTuple):
    """What is said of a key beside the type of its value."""

    meaning: str
    default: str
    """What holds without it, in words."""
    project: str = ""
    """How a project's file tightens by it; empty if the key is ignored there."""
    variable: str = ""
    """An environment variable that goes first, for one process."""
    part_of_policy: bool = False
    """Whether the key says what agents may do: then a policy file that is named takes its place."""


def _size(value: int | str) -> int:
    if isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        # A number of hundreds of digits is infinite as a float, and no whole number.
        value = int(min(float(match[1]) * _UNITS[(match[2] or "").upper()], 2.0 * _MOST_AMOUNT))
    if isinstance(value, str) or not 0 < value <= _MOST_AMOUNT:
        raise ValueError('is a number of bytes above 0 or a text such as "4 GiB"')
    return value


def _amount(value: int) -> int:
    if not 0 < value <= _MOST_AMOUNT:
        raise ValueError("is a whole number above 0")
    return value


def _readable_path(word: str) -> str:
    """An absolute path; none may bring the home folder or our own record along."""
    path = os.path.normpath(os.path.expanduser(word))
    if not os.path.isabs(path):
        raise ValueError(f"names `{word}`, which is no absolute path; write `/…` or `~/…`")
    if is_too_broad_to_show(path):
        raise ValueError(
            f"names `{word}`, which holds far more than commands need, keys perhaps; name folders in it"
        )
    try:
        record = state_root()
    except HostError:  # without a home there is no record either
        return path
    real = Path(os.path.realpath(path))
    if real.is_relative_to(record) or record.is_relative_to(real):
        raise ValueError(
            f"names `{word}`, which would show commands the record in {record}; name what they need"
        )
    return path


def _variable(name: str) -> str:
    if not _VARIABLE_NAME.fullmatch(name):
        raise ValueError(f"names `{name}`, which is no name of a variable")
    return name


def _host(word: str) -> str:
    try:
        parse_host_list((word,))
    except BadHostEntry as problem:
        raise ValueError(f"is no list of hosts: {problem}") from problem
    return word


def _glob(word: str) -> str:
    try:
        PathGlobs((word,)).check()
    except BadGlob as problem:
        raise ValueError(f"has a glob that can't be read: {problem}") from problem
    return word


def _port(value: int | str) -> str:
    try:
        parse_port_ranges((str(value),))
    except BadPort as problem:
        raise ValueError(f"is no list of ports: {problem}") from problem
    return str(value)


def _proxy(value: str) -> str:
    if value and not _PROXY.fullmatch(value):
        raise ValueError("is written as `http://HOST:PORT` or `http://USER:PASSWORD@HOST:PORT`")
    return value


def _one_of(names: Sequence[str]) -> AfterValidator:
    def check(name: str) -> str:
        if name not in names:
            raise ValueError(f"names `{name}`; there are {', '.join(names)}")
        return name

    return AfterValidator(check)


FORMATTER_NAMES = tuple(formatter.name for formatter in FORMATTERS)
SERVER_NAMES = tuple(server.name for server in LANGUAGE_SERVERS)

Amount = Annotated[int, AfterValidator(_amount)]
Size = Annotated[int | str, AfterValidator(_size)]
ReadablePath = Annotated[str, AfterValidator(_readable_path)]
Hosts = list[Annotated[str, AfterValidator(_host)]]


class ConfigTable(BaseModel):
    """A table of a configuration file: strict about types, and closed to keys that mean nothing."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class LimitsTable(ConfigTable):
    """The most that one command may use."""

    seconds: Annotated[
        Amount | None,
        KeyFacts(
            "Seconds until a command is ended; background jobs are not cut short.",
            "120, or what a call asks for up to 590",
            "lowers it",
        ),
    ] = None
    memory: Annotated[
        Size | None,
        KeyFacts(
            'Bytes of memory, or a text such as `"4 GiB"`.', "three quarters of the machine's", "lowers it"
        ),
    ] = None
    processes: Annotated[Amount | None, KeyFacts("Processes at a time.", "4,096", "lowers it")] = None
    open_files: Annotated[Amount | None, KeyFacts("Open files of each process.", "65,536", "lowers it")] = (
        None
    )
    written: Annotated[
        Size | None, KeyFacts('Bytes that it may write, or a text such as `"8 GiB"`.', "8 GiB", "lowers it")
    ] = None


_STRICTER = "counts where it is stricter"


class DefaultsTable(ConfigTable):
    """Verdicts (`allow`, `ask`, `deny`) where no rule speaks."""

    read: Annotated[Verdict | None, KeyFacts("Reading files of the workspace.", "allow", _STRICTER)] = None
    change: Annotated[Verdict | None, KeyFacts("Changing files of the workspace.", "allow", _STRICTER)] = (
        None
    )
    run: Annotated[
        Verdict | None,
        KeyFacts(
            "Running commands; a verdict that is written here holds in a sandbox, too.",
            "allow in a sandbox, else ask",
            _STRICTER,
        ),
    ] = None
    visit: Annotated[Verdict | None, KeyFacts("Reaching hosts that are not listed.", "ask", _STRICTER)] = (
        None
    )
    deliver: Annotated[
        Verdict | None, KeyFacts("Handing files to the person through the program.", "allow", _STRICTER)
    ] = None
    delegate: Annotated[
        Verdict | None, KeyFacts("Asking another model or agent through the program.", "allow", _STRICTER)
    ] = None
    publish: Annotated[
        Verdict | None,
        KeyFacts("Making a port of a background job reachable for the person.", "ask", _STRICTER),
    ] = None


class NotifyTable(ConfigTable):
    """How you hear of a call that waits for an answer; no call waits for it, or fails by it."""

    desktop: Annotated[
        bool, KeyFacts("A note on the desktop, by `notify-send` or `osascript`.", "false")
    ] = False
    bell: Annotated[bool, KeyFacts("The bell of the terminal that the process belongs to.", "false")] = (
        False
    )
    command: Annotated[
        list[str],
        KeyFacts(
            "A program outside the workspace, with its arguments; it gets the question as JSON on its input.",
            "none",
        ),
    ] = Field(default_factory=list)

    @model_validator(mode="after")
    def _has_a_program(self) -> "NotifyTable":
        if self.command and not self.command[0].strip():
            raise ValueError("names an empty command")
        return self


class RuleTable(ConfigTable):
    """A rule: a verdict on effects, for certain paths, commands or hosts. Deny beats ask beats allow."""

    name: Annotated[
        str, Field(min_length=1), KeyFacts("What it is called in questions and answers.", "needed")
    ]
    verdict: Annotated[Verdict, KeyFacts("`allow`, `ask` or `deny`.", "needed", "`deny` and `ask` count")]
    reason: Annotated[str, KeyFacts("Why, for the person and the model.", "a sentence")] = (
        "The policy file says so."
    )
    effects: Annotated[
        list[EffectKind] | None,
        KeyFacts("Kinds of effects that it is about: the keys of `[defaults]`.", "all"),
    ] = None
    paths: Annotated[
        list[str], KeyFacts("Globs of paths; each covers what is below it, too.", "every path")
    ] = Field(default_factory=list)
    but: Annotated[list[str], KeyFacts("Globs of paths that it is not about.", "none")] = Field(
        default_factory=list
    )
    commands: Annotated[
        list[str],
        KeyFacts(
            "Beginnings of commands, such as `git log|diff`; the rule is then about commands alone.", "none"
        ),
    ] = Field(default_factory=list)
    hosts: Annotated[Hosts, KeyFacts("Hosts; the rule is then about visits alone.", "none")] = Field(
        default_factory=list
    )
    tools: Annotated[list[str], KeyFacts("Names of the tools that it is about.", "all")] = Field(
        default_factory=list
    )
    match: Annotated[
        list[str], KeyFacts("Examples that it must match, tried when the file is read.", "none")
    ] = Field(default_factory=list)
    not_match: Annotated[list[str], KeyFacts("Examples that it must not match.", "none")] = Field(
        default_factory=list
    )

    @model_validator(mode="after")
    def _agrees_with_its_examples(self) -> "RuleTable":
        try:
            self.rule().check()
        except UsageError as problem:
            raise ValueError(str(problem)) from problem
        return self

    def rule(self) -> Rule:
        """The rule of a policy that this table describes."""
        lists: dict[str, Any] = {name: tuple(getattr(self, name)) for name in _RULE_LISTS}
        effects = EFFECT_KINDS if self.effects is None else frozenset(self.effects)
        return Rule(self.name, self.verdict, self.reason, effects, **lists)


_RULE_LISTS = ("paths", "but", "commands", "hosts", "tools", "match", "not_match")


class ConfigFile(ConfigTable):
    """A configuration file of handtools."""

    preset: Annotated[
        PresetLiteral,
        KeyFacts(
            "Which tools the MCP servers offer: `reading`, `coding` or `everything`; `--preset` goes first.",
            "coding",
        ),
    ] = "coding"
    runner: Annotated[
        str,
        KeyFacts(
            "What commands run under, as `--runner`: `bubblewrap`, `landlock`, `container:IMAGE`, `plain`.",
            "the strongest that works",
            variable="HANDTOOLS_RUNNER",
        ),
    ] = ""
    readable: Annotated[
        list[ReadablePath],
        KeyFacts(
            "Files and folders outside the workspace that commands may read, absolute or with `~`.", "none"
        ),
    ] = Field(default_factory=list)
    path: Annotated[
        list[ReadablePath],
        KeyFacts(
            "Folders of programs that come before `PATH` in commands, and that commands may read.", "none"
        ),
    ] = Field(default_factory=list)
    environment: Annotated[
        list[Annotated[str, AfterValidator(_variable)]],
        KeyFacts(
            "Environment variables that commands get beside the usual ones; a command can print their values.",
            "none",
        ),
    ] = Field(default_factory=list)
    hosts: Annotated[
        Hosts,
        KeyFacts(
            "Hosts that are reached without a question: `name`, `*.name`, `name:port`, an address or network.",
            "none",
            part_of_policy=True,
        ),
    ] = Field(default_factory=list)
    ports: Annotated[
        list[Annotated[int | str, AfterValidator(_port)]],
        KeyFacts(
            'Ports of background jobs that are published to you without a question: `3000`, `"8000-8999"`.',
            "none",
            part_of_policy=True,
        ),
    ] = Field(default_factory=list)
    proxy: Annotated[
        str,
        AfterValidator(_proxy),
        KeyFacts(
            "The HTTP proxy of web tools and commands: `http://HOST:PORT`, or with `USER:PASSWORD@`.",
            "none",
        ),
    ] = ""
    formatters: Annotated[
        list[Annotated[str, _one_of(FORMATTER_NAMES)]] | None,
        KeyFacts(
            "The only formatters that may run after a change; `[]` for none.",
            "all that a project asks for",
            "leaves some out",
        ),
    ] = None
    servers: Annotated[
        list[Annotated[str, _one_of(SERVER_NAMES)]] | None,
        KeyFacts(
            "The only language servers that may run; `[]` for none.",
            "all that are installed",
            "leaves some out",
            "HANDTOOLS_LANGUAGE",
        ),
    ] = None
    unattended: Annotated[
        Verdict,
        KeyFacts(
            "What becomes of a question that nobody can be asked; `ask` leaves it to `handtools approve`.",
            "ask",
            _STRICTER,
            part_of_policy=True,
        ),
    ] = "ask"
    tools: Annotated[
        ToolSet,
        KeyFacts(
            "Which tools may be offered: `all`, `coding` (no web), `read_only`, `none`.",
            "all",
            part_of_policy=True,
        ),
    ] = "all"
    allow: Annotated[
        list[str] | None,
        KeyFacts("Names of the only tools that may be offered.", "no such list", part_of_policy=True),
    ] = None
    block: Annotated[
        list[str],
        KeyFacts("Names of tools that are never offered.", "none", "adds to it", part_of_policy=True),
    ] = Field(default_factory=list)
    excluded: Annotated[
        list[Annotated[str, AfterValidator(_glob)]],
        KeyFacts(
            "Globs of paths that no tool sees, beside the private ones.",
            "none",
            "adds to it",
            part_of_policy=True,
        ),
    ] = Field(default_factory=list)
    limits: Annotated[
        LimitsTable, KeyFacts("The most that one command may use.", "as below", "lowers them")
    ] = LimitsTable()
    notify: Annotated[
        NotifyTable, KeyFacts("How you hear of a call that waits for an answer.", "nothing")
    ] = NotifyTable()
    defaults: Annotated[
        DefaultsTable,
        KeyFacts("Verdicts where no rule speaks.", "as below", _STRICTER, part_of_policy=True),
    ] = DefaultsTable()
    rule: Annotated[
        list[RuleTable],
        KeyFacts(
            "Rules, beside the built-in ones.",
            "the built-in ones",
            "adds `deny` and `ask`",
            part_of_policy=True,
        ),
    ] = Field(default_factory=list)


class ConfigKey(NamedTuple):
    """A key of the schema, with what is said about it everywhere."""

    name: str
    values: str
    """The values that it takes, in words."""
    facts: KeyFacts


def config_keys(table: type[ConfigTable] = ConfigFile, within: str = "") -> list[ConfigKey]:
    """The keys of a table in order; those of tables in it follow each, as `limits.memory`."""
    found: list[ConfigKey] = []
    schema = table.model_json_schema()
    for name in table.model_fields:
        facts = key_facts(table, name)
        values = _values_in_words(schema["properties"][name])
        found.append(ConfigKey(f"{within}{name}", values, facts))
        if name in NESTED_TABLES:
            found += config_keys(NESTED_TABLES[name], f"{name}.")
    return found


NESTED_TABLES: dict[str, type[ConfigTable]] = {
    "limits": LimitsTable,
    "notify": NotifyTable,
    "defaults": DefaultsTable,
    "rule": RuleTable,
}


def key_facts(table: type[ConfigTable], name: str) -> KeyFacts:
    """What is said about a key of a table beside its schema."""
    return next(fact for fact in table.model_fields[name].metadata if isinstance(fact, KeyFacts))


POLICY_KEYS = tuple(name for name in ConfigFile.model_fields if key_facts(ConfigFile, name).part_of_policy)
"""Keys that say what agents may do: a policy file has these."""
PERSONAL_KEYS = tuple(name for name in ConfigFile.model_fields if not key_facts(ConfigFile, name).project)
"""Keys that are ignored in a project's file."""


def config_json_schema() -> dict[str, Any]:
    """The JSON schema of a configuration file, for editors."""
    schema = ConfigFile.model_json_schema()
    tables: list[type[ConfigTable]] = [ConfigFile, *NESTED_TABLES.values()]
    for table in tables:
        described = schema if table is ConfigFile else schema["$defs"][table.__name__]
        for name, value in described["properties"].items():
            value["description"] = key_facts(table, name).meaning
            # TOML has no null: a key that is not set is left out.
            value.pop("default", None)
            if "anyOf" in value:
                value["anyOf"] = [one for one in value["anyOf"] if one.get("type") != "null"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema


class ConfigProblem(NamedTuple):
    """What is wrong in a configuration file, and on which line; 0 if that is unknown."""

    file: str
    line: int
    told: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.told}" if self.line else f"{self.file}: {self.told}"


class BadConfigFile(UsageError):
    """A configuration file that can't be understood, with everything that is wrong in it."""

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        more = f" And {len(problems) - 1} more: `handtools config check`." if len(problems) > 1 else ""
        super().__init__(f"{problems[0]}{more}")
        self.problems = tuple(problems)


def parse_config_file(
    text: str,
    where: str,
    *,
    keys: Collection[str] = tuple(ConfigFile.model_fields),
    unread: Collection[str] = (),
    table: Sequence[str] = (),
) -> tuple[ConfigFile, frozenset[str]]:
    """Parse the text of a configuration file, and say which keys it has.

    `keys` are those that it may have, `unread` those of them whose values are left alone; `table` names the table
    that is meant, as in a pyproject.toml. Raises `BadConfigFile`, which names file, line and key.
    """
    try:
        written: Any = parse_toml(text)
    except (ValueError, RecursionError) as problem:  # deep arrays, and numbers too long to be read
        raise BadConfigFile([ConfigProblem(where, 0, f"it is no TOML: {problem}.")]) from problem
    for name in table:
        written = written.get(name, {}) if isinstance(written, dict) else {}
    if not isinstance(written, dict):
        raise BadConfigFile([_located(text, where, table, (), f"{'.'.join(table)} is a table.")])
    if misplaced := sorted(written.keys() & ConfigFile.model_fields.keys() - set(keys)):
        told = f"`{misplaced[0]}` does not belong here. Known: {', '.join(sorted(keys))}."
        raise BadConfigFile([_located(text, where, table, (misplaced[0],), told)])
    read = {key: value for key, value in written.items() if key not in unread}
    try:
        return ConfigFile.model_validate(read), frozenset(written)
    except ValidationError as invalid:
        problems = [
            _located(text, where, table, each["loc"], _told(each, keys)) for each in invalid.errors()
        ]
        raise BadConfigFile(list(dict.fromkeys(problems))) from invalid


def _located(text: str, where: str, table: Sequence[str], loc: KeyPath, told: str) -> ConfigProblem:
    lines = toml_key_lines(text)
    path: KeyPath = (*table, *loc)
    while path and path not in lines:
        path = path[:-1]
    return ConfigProblem(where, lines.get(path, 0), told)


def _told(error: ErrorDetails, known: Collection[str]) -> str:
    """What pydantic found, in our words."""
    loc = [part for part in error["loc"] if isinstance(part, str) and not part.startswith("function-")]
    table = NESTED_TABLES.get(loc[0]) if loc else None
    key = ".".join(loc) or "The file"
    context = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            names = sorted(table.model_fields if table else known)
            near = similar_names(loc[-1], names, most=1)
            meant = f" (did you mean `{near[0]}`?)" if near else ""
            return f"`{loc[-1]}`{meant} means nothing here. Known: {', '.join(names)}."
        case "missing" | "string_too_short":
            return "every rule needs a name and a verdict."
        case "literal_error":
            return f"{key} is one of {context['expected']}, and not {error['input']!r}."
        case "list_type":
            return (
                "rules are written as [[rule]] tables." if key == "rule" else f"{key} is a list of words."
            )
        case "string_type":
            in_list = any(isinstance(part, int) for part in error["loc"])
            return f"{key} is a list of words." if in_list and key != "rule" else f"{key} is a word."
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"{key} is a table."
        case "value_error":
            whole_rule = key == "rule"
            return str(context["error"]) if whole_rule else f"{key} {context['error']}."
        case "int_type" | "int_from_float":
            return f"{key} is a whole number above 0."
        case "bool_type":
            return f"{key} is true or false."
        case _:
            return f"{key}: {error['msg']}."


def _values_in_words(schema: dict[str, Any]) -> str:
    """The values that a key takes, in words for a table of keys."""
    if "anyOf" in schema:
        words = [_values_in_words(each) for each in schema["anyOf"] if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(words))
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    if "$ref" in schema:
        return "a table"
    if schema.get("type") == "array":
        items = schema.get("items", {})
        if "$ref" in items:
            return "tables"
        one = _values_in_words(items)
        return "a list of " + one.replace("a text", "texts").replace("a whole number", "whole numbers")
    plain = {"string": "a text", "integer": "a whole number", "boolean": "`true`, `false`"}
    return plain[schema["type"]]
