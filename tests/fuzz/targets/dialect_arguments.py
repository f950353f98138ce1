"""Arguments in every vendor's shape: calls of our own tools whose arguments we take, or `InvalidInput`."""

from handtools.core.call import Call
from handtools.core.dialects.all_dialects import DIALECTS
from handtools.core.errors import InvalidInput, ToolError
from handtools.runtime.arguments import validate_arguments
from handtools.runtime.dialect_calls import calls_of_ours
from handtools.toolbox import EDITORS, EVERYTHING, built_in_tool
from tests.fuzz.drawn_values import DrawnValues

ROWS = [row for dialect in DIALECTS.values() for row in dialect]
TOOLS = tuple(map(built_in_tool, (*EVERYTHING, *EDITORS)))
OURS = {tool.name: tool for tool in TOOLS}
WORDS = [
    *sorted({name for row in ROWS for name in row.schema.get("properties", ())}),
    *sorted({name for tool in TOOLS for name in tool.params.model_fields}),
    "a.py", "*.py", "view", "str_replace", "create", "insert", "1-5", "[1, 2]", '{"a": 1}', "*** Begin Patch",
]  # fmt: skip
SEEDS = [
    *(bytes([number, 0, 2]) + b"\x05\x05\x06a\xff" for number in range(0, len(ROWS), 3)),
    b"\x06}'\x85p\xa6insert",
]
PARSERS = ["handtools.core.dialects", "handtools.runtime.arguments", "handtools.runtime.dialect_calls"]
FOUND: dict[str, bytes] = {}


def fuzz(data):
    drawn = DrawnValues(data)
    number = drawn.below(len(ROWS) + len(OURS))
    rows = [*ROWS, *OURS.values()]
    args = arguments(drawn, rows[number])
    try:
        if number >= len(ROWS):
            validate_arguments(rows[number], args)
            return
        name, ours = next(calls_of_ours(rows[number], Call(tool=rows[number].name, args=args)))
    except StopIteration:  # it has an answer without any call
        return
    except ToolError:
        return
    try:
        validate_arguments(OURS[name], ours)
    except InvalidInput as refused:
        assert str(refused)


def arguments(drawn, row):
    """Mostly names that the tool has, so that most get past the first check."""
    names = [*row.params.model_fields]
    if not names or drawn.below(4) == 3:
        made = drawn.json(WORDS)
        return made if isinstance(made, dict) else {"x": made}
    given = {}
    for name in names:
        field = row.params.model_fields[name]
        if drawn.below(3) or field.is_required():
            kind = drawn.below(6)
            given[field.alias or name] = [drawn.text, lambda: drawn.json(WORDS), lambda: drawn.below(50),
                lambda: bool(drawn.below(2)), lambda: [drawn.text()], lambda: str(drawn.below(9))][kind]()  # fmt: skip
    return given
