"""The schema of configuration files: keys, values, their meaning, and what a project's file may change.

It is the single source for parsing files, `handtools config`, the JSON schema for editors and the settings
page.
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
from handtools.text.toml_parsing import KeyPath, parse_toml, toml_key_lines
from handtools.text.web.host_access import BadHostEntry, BadPort, parse_host_list, parse_port_ranges

PresetLiteral = Literal["reading", "coding", "everything"]

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([KMGT])(?:i?B)?|B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROXY = re.compile(r"http://(?:[^/@\s]+@)?(?:\[[0-9A-Fa-f:.]+\]|[^/@:\s\[\]]+):\d{1,5}/?", re.ASCII)
_MAX_AMOUNT = 1 << 62


class KeyFacts(NamedTuple):
    """Documentation of a key, in addition to the type of its value."""

    meaning: str
    default: str
    """The default, in words."""
    project: str = ""
    """How a project's file can tighten the key; empty if the key is ignored there."""
    variable: str = ""
    """An environment variable that overrides the key for one process."""
    part_of_policy: bool = False
    """Whether the key is part of the policy, so that an explicit policy file overrides it."""


def _parse_size(value: int | str) -> int:
    if isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        # A number with hundreds of digits becomes infinity, for which `int` would raise.
        value = int(min(float(match[1]) * _UNITS[(match[2] or "").upper()], 2.0 * _MAX_AMOUNT))
    if isinstance(value, str) or not 0 < value <= _MAX_AMOUNT:
        raise ValueError('must be a number of bytes above 0 or a string such as "4 GiB"')
    return value


def _valid_positive_number(value: int) -> int:
    if not 0 < value <= _MAX_AMOUNT:
        raise ValueError("must be an integer above 0")
    return value


def _valid_readable_path(word: str) -> str:
    """Return the absolute path; raises `ValueError` if it contains the home folder or our state folder."""
    path = os.path.normpath(os.path.expanduser(word))
    if not os.path.isabs(path):
        raise ValueError(f"has `{word}`, which is not an absolute path; write `/…` or `~/…`")
    if is_too_broad_to_show(path):
        raise ValueError(
            f"has `{word}`, which contains more than commands need, maybe keys; list folders in it instead"
        )
    try:
        record = state_root()
    except HostError:  # without a home folder there is no state folder either
        return path
    real = Path(os.path.realpath(path))
    if real.is_relative_to(record) or record.is_relative_to(real):
        raise ValueError(
            f"has `{word}`, which would show commands the logs in {record}; list only the folders they need"
        )
    return path


def _valid_variable_name(name: str) -> str:
    if not _VARIABLE_NAME.fullmatch(name):
        raise ValueError(f"has `{name}`, which is not a valid variable name")
    return name


def _valid_host(word: str) -> str:
    try:
        parse_host_list((word,))
    except BadHostEntry as problem:
        raise ValueError(f"is not a valid list of hosts: {problem}") from problem
    return word


def _valid_glob(word: str) -> str:
    try:
        PathGlobs((word,)).check()
    except BadGlob as problem:
        raise ValueError(f"has an invalid glob: {problem}") from problem
    return word


def _valid_port_range(value: int | str) -> str:
    try:
        parse_port_ranges((str(value),))
    except BadPort as problem:
        raise ValueError(f"is not a valid list of ports: {problem}") from problem
    return str(value)


def _valid_proxy_url(value: str) -> str:
    if value and not _PROXY.fullmatch(value):
        raise ValueError("must have the form `http://HOST:PORT` or `http://USER:PASSWORD@HOST:PORT`")
    return value


def _validator_for_names(names: Sequence[str]) -> AfterValidator:
    def check(name: str) -> str:
        if name not in names:
            raise ValueError(f"has unknown name `{name}`. Known: {', '.join(names)}")
        return name

    return AfterValidator(check)


FORMATTER_NAMES = tuple(formatter.name for formatter in FORMATTERS)
SERVER_NAMES = tuple(server.name for server in LANGUAGE_SERVERS)

Amount = Annotated[int, AfterValidator(_valid_positive_number)]
Size = Annotated[int | str, AfterValidator(_parse_size)]
ReadablePath = Annotated[str, AfterValidator(_valid_readable_path)]
Hosts = list[Annotated[str, AfterValidator(_valid_host)]]


class ConfigTable(BaseModel):
    """A table of a configuration file: strict types, unknown keys forbidden."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class LimitsTable(ConfigTable):
    """Resource limits of one command."""

    seconds: Annotated[
        Amount | None,
        KeyFacts(
            "Seconds until a command is stopped; does not apply to background jobs.",
            "120, or the call's own timeout up to 590",
            "can lower it",
        ),
    ] = None
    memory: Annotated[
        Size | None,
        KeyFacts(
            'Bytes of memory, or a string such as `"4 GiB"`.',
            "three quarters of the machine's memory",
            "can lower it",
        ),
    ] = None
    processes: Annotated[Amount | None, KeyFacts("Processes at a time.", "4,096", "can lower it")] = None
    open_files: Annotated[Amount | None, KeyFacts("Open files per process.", "65,536", "can lower it")] = (
        None
    )
    written: Annotated[
        Size | None, KeyFacts('Bytes written, or a string such as `"8 GiB"`.', "8 GiB", "can lower it")
    ] = None


_STRICTER = "applies if it is stricter"


class DefaultsTable(ConfigTable):
    """Verdicts (`allow`, `ask`, `deny`) if no rule matches."""

    read: Annotated[Verdict | None, KeyFacts("Reading files in the workspace.", "allow", _STRICTER)] = None
    change: Annotated[Verdict | None, KeyFacts("Changing files in the workspace.", "allow", _STRICTER)] = (
        None
    )
    run: Annotated[
        Verdict | None,
        KeyFacts(
            "Running commands; a verdict set here also applies in a sandbox.",
            "allow in a sandbox, otherwise ask",
            _STRICTER,
        ),
    ] = None
    visit: Annotated[Verdict | None, KeyFacts("Connecting to hosts not in `hosts`.", "ask", _STRICTER)] = (
        None
    )
    deliver: Annotated[
        Verdict | None, KeyFacts("Sending files to the user through the program.", "allow", _STRICTER)
    ] = None
    delegate: Annotated[
        Verdict | None, KeyFacts("Asking another model or agent through the program.", "allow", _STRICTER)
    ] = None
    publish: Annotated[
        Verdict | None,
        KeyFacts("Publishing a background job's port to the user.", "ask", _STRICTER),
    ] = None


class NotifyTable(ConfigTable):
    """How you are notified of calls that need approval; no call waits for a notification or fails by it."""

    desktop: Annotated[
        bool, KeyFacts("Desktop notification, with `notify-send` or `osascript`.", "false")
    ] = False
    bell: Annotated[bool, KeyFacts("Ring the bell of the process's terminal.", "false")] = False
    command: Annotated[
        list[str],
        KeyFacts(
            "Program outside the workspace, with arguments; it gets the approval request as JSON on stdin.",
            "none",
        ),
    ] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_has_program(self) -> "NotifyTable":
        if self.command and not self.command[0].strip():
            raise ValueError("has an empty command")
        return self


class RuleTable(ConfigTable):
    """A rule: a verdict on effects, for certain paths, commands or hosts. Deny beats ask beats allow."""

    name: Annotated[
        str, Field(min_length=1), KeyFacts("Name shown in approval requests and results.", "required")
    ]
    verdict: Annotated[Verdict, KeyFacts("`allow`, `ask` or `deny`.", "required", "can be `deny` or `ask`")]
    reason: Annotated[str, KeyFacts("Reason shown to the user and the model.", "a sentence")] = (
        "Set in the policy file."
    )
    effects: Annotated[
        list[EffectKind] | None,
        KeyFacts("Kinds of effects that it covers: the keys of `[defaults]`.", "all"),
    ] = None
    paths: Annotated[
        list[str], KeyFacts("Path globs; each includes everything below it.", "every path")
    ] = Field(default_factory=list)
    but: Annotated[list[str], KeyFacts("Path globs to exclude.", "none")] = Field(default_factory=list)
    commands: Annotated[
        list[str],
        KeyFacts("Command prefixes, such as `git log|diff`; the rule then covers only commands.", "none"),
    ] = Field(default_factory=list)
    hosts: Annotated[Hosts, KeyFacts("Hosts; the rule then covers only connections.", "none")] = Field(
        default_factory=list
    )
    tools: Annotated[list[str], KeyFacts("Names of the tools that it covers.", "all")] = Field(
        default_factory=list
    )
    match: Annotated[
        list[str], KeyFacts("Examples that it must match, checked when the file is read.", "none")
    ] = Field(default_factory=list)
    not_match: Annotated[list[str], KeyFacts("Examples that it must not match.", "none")] = Field(
        default_factory=list
    )

    @model_validator(mode="after")
    def _check_examples(self) -> "RuleTable":
        try:
            self.to_policy_rule().check()
        except UsageError as problem:
            raise ValueError(str(problem)) from problem
        return self

    def to_policy_rule(self) -> Rule:
        """The policy rule that this table describes."""
        lists: dict[str, Any] = {name: tuple(getattr(self, name)) for name in _RULE_LISTS}
        effects = EFFECT_KINDS if self.effects is None else frozenset(self.effects)
        return Rule(self.name, self.verdict, self.reason, effects, **lists)


_RULE_LISTS = ("paths", "but", "commands", "hosts", "tools", "match", "not_match")


class ConfigFile(ConfigTable):
    """A handtools configuration file."""

    preset: Annotated[
        PresetLiteral,
        KeyFacts(
            "Tools that MCP servers offer: `reading`, `coding` or `everything`; `--preset` overrides it.",
            "coding",
        ),
    ] = "coding"
    runner: Annotated[
        str,
        KeyFacts(
            "Sandbox for commands, like `--runner`: `bubblewrap`, `landlock`, `container:IMAGE`, `plain`.",
            "the strongest available",
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
        KeyFacts("Folders to put before `PATH` in commands; commands may read them.", "none"),
    ] = Field(default_factory=list)
    environment: Annotated[
        list[Annotated[str, AfterValidator(_valid_variable_name)]],
        KeyFacts(
            "Additional environment variables to pass to commands; a command can print their values.",
            "none",
        ),
    ] = Field(default_factory=list)
    hosts: Annotated[
        Hosts,
        KeyFacts(
            "Hosts that need no approval: `name`, `*.name`, `name:port`, an address or network.",
            "none",
            part_of_policy=True,
        ),
    ] = Field(default_factory=list)
    ports: Annotated[
        list[Annotated[int | str, AfterValidator(_valid_port_range)]],
        KeyFacts(
            'Ports of background jobs that are published without approval: `3000`, `"8000-8999"`.',
            "none",
            part_of_policy=True,
        ),
    ] = Field(default_factory=list)
    proxy: Annotated[
        str,
        AfterValidator(_valid_proxy_url),
        KeyFacts(
            "HTTP proxy for web tools and commands: `http://HOST:PORT`, or with `USER:PASSWORD@`.",
            "none",
        ),
    ] = ""
    formatters: Annotated[
        list[Annotated[str, _validator_for_names(FORMATTER_NAMES)]] | None,
        KeyFacts(
            "The only formatters that may run after a change; `[]` for none.",
            "all that the project configures",
            "can remove some",
        ),
    ] = None
    servers: Annotated[
        list[Annotated[str, _validator_for_names(SERVER_NAMES)]] | None,
        KeyFacts(
            "The only language servers that may run; `[]` for none.",
            "all that are installed",
            "can remove some",
            "HANDTOOLS_LANGUAGE",
        ),
    ] = None
    unattended: Annotated[
        Verdict,
        KeyFacts(
            "What to do if a call needs approval and no user can be asked; `ask` waits for `approve`.",
            "ask",
            _STRICTER,
            part_of_policy=True,
        ),
    ] = "ask"
    tools: Annotated[
        ToolSet,
        KeyFacts(
            "Tools that may be offered: `all`, `coding` (no web), `read_only`, `none`.",
            "all",
            part_of_policy=True,
        ),
    ] = "all"
    allow: Annotated[
        list[str] | None,
        KeyFacts("Names of the only tools that may be offered.", "no restriction", part_of_policy=True),
    ] = None
    block: Annotated[
        list[str],
        KeyFacts("Names of tools that are never offered.", "none", "can add to it", part_of_policy=True),
    ] = Field(default_factory=list)
    excluded: Annotated[
        list[Annotated[str, AfterValidator(_valid_glob)]],
        KeyFacts(
            "Globs of paths to hide from all tools, in addition to the private ones.",
            "none",
            "can add to it",
            part_of_policy=True,
        ),
    ] = Field(default_factory=list)
    limits: Annotated[
        LimitsTable, KeyFacts("Resource limits of one command.", "as below", "can lower them")
    ] = LimitsTable()
    notify: Annotated[
        NotifyTable, KeyFacts("How you are notified of calls that need approval.", "no notification")
    ] = NotifyTable()
    defaults: Annotated[
        DefaultsTable,
        KeyFacts("Verdicts if no rule matches.", "as below", _STRICTER, part_of_policy=True),
    ] = DefaultsTable()
    rule: Annotated[
        list[RuleTable],
        KeyFacts(
            "Rules, in addition to the built-in ones.",
            "the built-in ones",
            "can add `deny` and `ask`",
            part_of_policy=True,
        ),
    ] = Field(default_factory=list)


class ConfigKey(NamedTuple):
    """A key of the schema with its documentation."""

    name: str
    values: str
    """The values that it accepts, in words."""
    facts: KeyFacts


def config_keys(table: type[ConfigTable] = ConfigFile, within: str = "") -> list[ConfigKey]:
    """The keys of a table in order; each nested table is followed by its keys, such as `limits.memory`."""
    keys: list[ConfigKey] = []
    schema = table.model_json_schema()
    for name in table.model_fields:
        facts = facts_of_key(table, name)
        values = _accepted_values_in_words(schema["properties"][name])
        keys.append(ConfigKey(f"{within}{name}", values, facts))
        if name in NESTED_TABLES:
            keys += config_keys(NESTED_TABLES[name], f"{name}.")
    return keys


NESTED_TABLES: dict[str, type[ConfigTable]] = {
    "limits": LimitsTable,
    "notify": NotifyTable,
    "defaults": DefaultsTable,
    "rule": RuleTable,
}


def facts_of_key(table: type[ConfigTable], name: str) -> KeyFacts:
    """The documentation of a table's key."""
    return next(fact for fact in table.model_fields[name].metadata if isinstance(fact, KeyFacts))


POLICY_KEYS = tuple(
    name for name in ConfigFile.model_fields if facts_of_key(ConfigFile, name).part_of_policy
)
"""Keys that define the policy; a policy file may have only these."""
PERSONAL_KEYS = tuple(
    name for name in ConfigFile.model_fields if not facts_of_key(ConfigFile, name).project
)
"""Keys that are ignored in a project's file."""


def config_json_schema() -> dict[str, Any]:
    """The JSON schema of a configuration file, for editors."""
    schema = ConfigFile.model_json_schema()
    tables: list[type[ConfigTable]] = [ConfigFile, *NESTED_TABLES.values()]
    for table in tables:
        described = schema if table is ConfigFile else schema["$defs"][table.__name__]
        for name, value in described["properties"].items():
            value["description"] = facts_of_key(table, name).meaning
            # TOML has no null: an unset key is omitted.
            value.pop("default", None)
            if "anyOf" in value:
                value["anyOf"] = [one for one in value["anyOf"] if one.get("type") != "null"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema


class ConfigProblem(NamedTuple):
    """A problem in a configuration file, with its line number, or 0 if that is unknown."""

    file: str
    line: int
    told: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.told}" if self.line else f"{self.file}: {self.told}"


class BadConfigFile(UsageError):
    """Error for an invalid configuration file, with all of its problems."""

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        more = f" {len(problems) - 1} more: run `handtools config check`." if len(problems) > 1 else ""
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
    """Parse a configuration file; return its values and the keys that it sets.

    `keys` are the allowed keys, and `unread` those whose values are not parsed. `table` is the path of our
    table in the file, as in a pyproject.toml. Raises `BadConfigFile`, which names file, line and key.
    """
    try:
        written: Any = parse_toml(text)
    except (ValueError, RecursionError) as problem:  # deeply nested arrays and very long numbers raise too
        raise BadConfigFile([ConfigProblem(where, 0, f"not valid TOML: {problem}.")]) from problem
    for name in table:
        written = written.get(name, {}) if isinstance(written, dict) else {}
    if not isinstance(written, dict):
        raise BadConfigFile(
            [_problem_at_key(text, where, table, (), f"{'.'.join(table)} must be a table.")]
        )
    if misplaced := sorted(written.keys() & ConfigFile.model_fields.keys() - set(keys)):
        told = f"`{misplaced[0]}` is not allowed in this file. Allowed: {', '.join(sorted(keys))}."
        raise BadConfigFile([_problem_at_key(text, where, table, (misplaced[0],), told)])
    read = {key: value for key, value in written.items() if key not in unread}
    try:
        return ConfigFile.model_validate(read), frozenset(written)
    except ValidationError as invalid:
        problems = [
            _problem_at_key(text, where, table, each["loc"], _error_message(each, keys))
            for each in invalid.errors()
        ]
        raise BadConfigFile(list(dict.fromkeys(problems))) from invalid


def _problem_at_key(text: str, where: str, table: Sequence[str], loc: KeyPath, told: str) -> ConfigProblem:
    lines = toml_key_lines(text)
    path: KeyPath = (*table, *loc)
    while path and path not in lines:
        path = path[:-1]
    return ConfigProblem(where, lines.get(path, 0), told)


def _error_message(error: ErrorDetails, known: Collection[str]) -> str:
    """Turn a pydantic error into a message for the user."""
    loc = [part for part in error["loc"] if isinstance(part, str) and not part.startswith("function-")]
    table = NESTED_TABLES.get(loc[0]) if loc else None
    key = ".".join(loc) or "The file"
    context = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            names = sorted(table.model_fields if table else known)
            near = similar_names(loc[-1], names, most=1)
            meant = f" (did you mean `{near[0]}`?)" if near else ""
            return f"`{loc[-1]}`{meant} is not a known key. Known: {', '.join(names)}."
        case "missing" | "string_too_short":
            return "every rule needs a name and a verdict."
        case "literal_error":
            return f"{key} must be one of {context['expected']}, not {error['input']!r}."
        case "list_type":
            return (
                "rules must be [[rule]] tables." if key == "rule" else f"{key} must be a list of strings."
            )
        case "string_type":
            in_list = any(isinstance(part, int) for part in error["loc"])
            return (
                f"{key} must be a list of strings."
                if in_list and key != "rule"
                else f"{key} must be a string."
            )
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"{key} must be a table."
        case "value_error":
            whole_rule = key == "rule"
            return str(context["error"]) if whole_rule else f"{key} {context['error']}."
        case "int_type" | "int_from_float":
            return f"{key} must be an integer above 0."
        case "bool_type":
            return f"{key} must be true or false."
        case _:
            return f"{key}: {error['msg']}."


def _accepted_values_in_words(schema: dict[str, Any]) -> str:
    """The values that a key accepts, in words."""
    if "anyOf" in schema:
        words = [_accepted_values_in_words(each) for each in schema["anyOf"] if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(words))
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    if "$ref" in schema:
        return "a table"
    if schema.get("type") == "array":
        items = schema.get("items", {})
        if "$ref" in items:
            return "tables"
        one = _accepted_values_in_words(items)
        return "a list of " + one.replace("a string", "strings").replace("an integer", "integers")
    plain = {"string": "a string", "integer": "an integer", "boolean": "`true`, `false`"}
    return plain[schema["type"]]
