"""The page of settings, made from the schema: `python -m tests.docs.settings_page` writes it."""

# ruff: noqa: E501 - the lines of a page

from pathlib import Path

from handtools.configuration.origins import ENVIRONMENT_VARIABLES
from handtools.configuration.schema import NESTED_TABLES, ConfigKey, config_keys

PAGE = Path(__file__).parents[2] / "docs/reference/settings.md"
MADE = "<!-- Made from the code by `just docs`: change `tests/docs/settings_page.py` or the schema, not this page. -->"

HEAD = """\
# Settings

{made}

Everything that can be configured stands in one file, `~/.config/handtools/config.toml` (`$XDG_CONFIG_HOME` is honoured): what
agents may do, and what commands find. The command line and the MCP servers read it when they start. A project's own file may only
tighten it. [Configure handtools](../how-to/configure.md) shows how; `handtools config` says what is in force and where it stands.

```toml
{example}```

## Keys

"In a project" says what the key does in a project's `.handtools.toml` or `[tool.handtools]` of its `pyproject.toml`. Where that is
empty the key is ignored there, and a sentence says so. A key that means nothing is an error that names the line and the near key,
and nothing starts.
"""

EXAMPLE = """\
preset = "coding"
readable = ["~/data/fixtures", "/srv/sdk"]
path = ["~/.venvs/work/bin"]
environment = ["CARGO_HOME", "JAVA_HOME"]
hosts = ["packages.example.org", "*.cdn.example.org"]
ports = [3000, "8000-8999"]
formatters = ["ruff", "prettier"]
unattended = "deny"
excluded = ["vendor/**"]

[limits]
seconds = 300
memory = "4 GiB"

[notify]
desktop = true

[defaults]
run = "ask"

[[rule]]
name = "migrations"
verdict = "ask"
reason = "A person looks at migrations."
effects = ["change"]
paths = ["migrations/**"]
"""

TAIL = """\
## Environment variables

For what must differ from process to process, and for secrets:

| variable | meaning |
|---|---|
{variables}

## Files

| file | what it is |
|---|---|
| `~/.config/handtools/config.toml` | yours |
| `.handtools.toml` in a workspace | the project's: it may only tighten. Agents change it only after a question. A plain file of at most 64 kB. |
| `[tool.handtools]` in a `pyproject.toml` | the same; with both, both tighten. A change of this table asks, any other change of the file does not. A plain file of at most 1 MB. |
| a policy file, named by `--policy`, `HANDTOOLS_POLICY` or a [token](../how-to/mcp-server.md) | the policy keys alone (`allow`, `block`, `defaults`, `excluded`, `hosts`, `ports`, `rule`, `tools`, `unattended`); it takes the place of yours |

A file inside the workspace is refused as your own: agents could change it.

## From Python

Nothing of a person's is read unless a program asks for it:

<!-- run -->
```python
from handtools import coding, load_configuration

found = load_configuration(".")
toolbox = coding(".", policy=found.policy, settings=found.settings)
print(found.settings.limits.processes)
```

<!-- prints -->
```text
None
```
"""


def page() -> str:
    """The whole page."""
    keys = config_keys()
    top = [key for key in keys if "." not in key.name]
    parts = [HEAD.format(made=MADE, example=EXAMPLE), _table(top)]
    for name, table in NESTED_TABLES.items():
        heading = f"### `[[{name}]]`" if name == "rule" else f"### `[{name}]`"
        own = [key for key in keys if key.name.startswith(f"{name}.")]
        parts.append(f"{heading}\n\n{table.__doc__}\n\n{_table(own)}")
    rows = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in ENVIRONMENT_VARIABLES.items())
    parts.append(TAIL.format(variables=rows))
    return "\n".join(parts)


def _table(keys: list[ConfigKey]) -> str:
    rows = [
        f"| `{key.name.rpartition('.')[2]}` | {key.values} | {key.facts.default} | {key.facts.project} | {_cell(key)} |"
        for key in keys
    ]
    head = "| key | value | default | in a project | meaning |\n|---|---|---|---|---|\n"
    return head + "\n".join(rows) + "\n"


def _cell(key: ConfigKey) -> str:
    first = f" `{key.facts.variable}` overrides it." if key.facts.variable else ""
    return key.facts.meaning.replace("|", "\\|") + first


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
