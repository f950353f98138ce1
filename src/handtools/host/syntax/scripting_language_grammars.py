"""Syntax rules for Bash, JavaScript, TypeScript, Lua, PHP, Python and Ruby: definitions, calls, imports."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from handtools.core.syntax import SymbolKind
from handtools.host.syntax.grammar import (
    AstGrepRule,
    DefinitionRule,
    Grammar,
    SymbolName,
    child_name_finder,
    field_name_finder,
    node_kind_rule,
    node_text_as_name,
    parent_kind_rule,
    symbol_name_finder_with_replacement,
    typed_field_name_finder,
)

if TYPE_CHECKING:
    from ast_grep_py import SgNode

_BASH_TOP_LEVEL = {
    "any": [
        {"inside": {"kind": "program"}},
        {"inside": {"kind": "declaration_command", "inside": {"kind": "program"}}},
    ]
}

BASH = Grammar(
    language="bash",
    definitions={
        "function_definition": DefinitionRule("function", field_name_finder("name")),
        "variable_assignment": DefinitionRule(
            "variable", field_name_finder("name"), where=_BASH_TOP_LEVEL, body="value"
        ),
    },
    calls={"command": "name"},
    strings=("string", "raw_string", "heredoc_body"),
)

JS_FUNCTIONS = ("arrow_function", "function_expression", "generator_function")
JS_CALLABLE: AstGrepRule = {"has": {"field": "value", **node_kind_rule(*JS_FUNCTIONS)}}
_JS_TOP_LEVEL = {
    "inside": {
        **node_kind_rule("lexical_declaration", "variable_declaration"),
        **parent_kind_rule("program", "export_statement"),
    }
}
_JS_AS_FUNCTION: Mapping[str, SymbolKind] = dict.fromkeys(JS_FUNCTIONS, "function")

JS_DEFINITIONS = {
    "class_declaration": DefinitionRule("class", field_name_finder("name")),
    "function_declaration": DefinitionRule("function", field_name_finder("name")),
    "generator_function_declaration": DefinitionRule("function", field_name_finder("name")),
    "method_definition": DefinitionRule("method", field_name_finder("name")),
    "variable_declarator": DefinitionRule(
        "variable",
        typed_field_name_finder("name", "identifier"),
        where={"any": [JS_CALLABLE, _JS_TOP_LEVEL]},
        refine=_JS_AS_FUNCTION,
        body="value",
    ),
    "pair": DefinitionRule(
        "function",
        symbol_name_finder_with_replacement(field_name_finder("key"), r"^['\"]|['\"]$"),
        where=JS_CALLABLE,
        body="value",
    ),
    "assignment_expression": DefinitionRule(
        "function",
        field_name_finder("left"),
        where={"has": {"field": "right", **node_kind_rule(*JS_FUNCTIONS)}},
        body="right",
    ),
}
JS_WRAPPERS = frozenset({"export_statement"})
JS_CALLS = {"call_expression": "function", "new_expression": "constructor"}
JS_IMPORTS = ("import_statement",)
JS_STRINGS = ("string", "template_string")

JAVASCRIPT = Grammar(
    language="javascript",
    definitions={
        **JS_DEFINITIONS,
        "field_definition": DefinitionRule(
            "field", field_name_finder("property"), refine=_JS_AS_FUNCTION, body="value"
        ),
    },
    wrappers=JS_WRAPPERS,
    calls=JS_CALLS,
    imports=JS_IMPORTS,
    strings=JS_STRINGS,
)

_TS_UNQUOTED = symbol_name_finder_with_replacement(field_name_finder("name"), r"^['\"]|['\"]$")

TYPESCRIPT = Grammar(
    language="typescript",
    definitions={
        **JS_DEFINITIONS,
        "abstract_class_declaration": DefinitionRule("class", field_name_finder("name")),
        "interface_declaration": DefinitionRule("interface", field_name_finder("name")),
        "enum_declaration": DefinitionRule("enum", field_name_finder("name")),
        "type_alias_declaration": DefinitionRule("type", field_name_finder("name"), body="value"),
        "internal_module": DefinitionRule("namespace", _TS_UNQUOTED),
        "module": DefinitionRule("namespace", _TS_UNQUOTED),
        "function_signature": DefinitionRule("function", field_name_finder("name")),
        "method_signature": DefinitionRule(
            "method", field_name_finder("name"), where={"inside": {"kind": "interface_body"}}
        ),
        "abstract_method_signature": DefinitionRule("method", field_name_finder("name")),
        "property_signature": DefinitionRule(
            "field", field_name_finder("name"), where={"inside": {"kind": "interface_body"}}
        ),
        "public_field_definition": DefinitionRule(
            "field", field_name_finder("name"), refine=dict.fromkeys(JS_FUNCTIONS, "method"), body="value"
        ),
    },
    wrappers=JS_WRAPPERS,
    prefixes=frozenset({"decorator"}),
    calls=JS_CALLS,
    imports=JS_IMPORTS,
    strings=JS_STRINGS,
)
TSX = replace(TYPESCRIPT, language="tsx")

_LUA_FUNCTION = {"has": {"kind": "expression_list", "has": {"kind": "function_definition"}}}
_LUA_LOCAL = {"inside": {"kind": "variable_declaration", "inside": {"kind": "chunk"}}}

LUA = Grammar(
    language="lua",
    definitions={
        "function_declaration": DefinitionRule("function", field_name_finder("name")),
        "assignment_statement": DefinitionRule(
            "variable",
            lambda node: node_text_as_name(next(iter(node.named_children()), None)),
            where={"any": [_LUA_FUNCTION, _LUA_LOCAL]},
        ),
        "field": DefinitionRule(
            "function",
            field_name_finder("name"),
            where={"has": {"field": "value", "kind": "function_definition"}},
        ),
    },
    calls={"function_call": "name"},
    strings=("string",),
)

PHP = Grammar(
    language="php",
    definitions={
        "namespace_definition": DefinitionRule("namespace", field_name_finder("name")),
        "class_declaration": DefinitionRule("class", field_name_finder("name")),
        "interface_declaration": DefinitionRule("interface", field_name_finder("name")),
        "trait_declaration": DefinitionRule("trait", field_name_finder("name")),
        "enum_declaration": DefinitionRule("enum", field_name_finder("name")),
        "function_definition": DefinitionRule("function", field_name_finder("name")),
        "method_declaration": DefinitionRule("method", field_name_finder("name")),
        "const_element": DefinitionRule("constant", child_name_finder("name")),
        "property_element": DefinitionRule(
            "field",
            lambda node: node_text_as_name(node.field("name") or next(iter(node.named_children()), None)),
        ),
    },
    calls={
        "function_call_expression": "function",
        "member_call_expression": "name",
        "scoped_call_expression": "name",
        "object_creation_expression": "",
    },
    imports=("namespace_use_declaration",),
    strings=("string", "encapsed_string", "heredoc"),
)


_PYTHON_HOLDERS = {"module", "class_definition"}


def _python_variable_name(node: "SgNode") -> SymbolName | None:
    """Return the name of a variable assigned directly in a module or a class, not inside an `if`."""
    left = node.field("left")
    if left is None or left.kind() != "identifier":
        return None
    if not node.range().start.column:
        # Nested code never starts at column 0; this is cheaper than checking the parent.
        return node_text_as_name(left)
    statement = node.parent()
    outer = statement and statement.parent()
    if outer is not None and outer.kind() == "block":
        outer = outer.parent()
    return node_text_as_name(left) if outer is not None and outer.kind() in _PYTHON_HOLDERS else None


PYTHON = Grammar(
    language="python",
    definitions={
        "class_definition": DefinitionRule("class", field_name_finder("name")),
        "function_definition": DefinitionRule("function", field_name_finder("name")),
        "type_alias_statement": DefinitionRule("type", field_name_finder("left")),
        "assignment": DefinitionRule("variable", _python_variable_name, body="right", local=False),
    },
    wrappers=frozenset({"decorated_definition"}),
    calls={"call": "function", "decorator": ""},
    imports=("import_statement", "import_from_statement", "future_import_statement"),
    strings=("string",),
)

RUBY = Grammar(
    language="ruby",
    definitions={
        "module": DefinitionRule("namespace", field_name_finder("name")),
        "class": DefinitionRule("class", field_name_finder("name")),
        "method": DefinitionRule("function", field_name_finder("name")),
        "singleton_method": DefinitionRule("function", field_name_finder("name")),
        "assignment": DefinitionRule("constant", typed_field_name_finder("left", "constant"), body="right"),
    },
    calls={"call": "method"},
    imports=(),
    strings=("string", "heredoc_body"),
)
