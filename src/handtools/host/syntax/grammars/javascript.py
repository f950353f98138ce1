"""JavaScript, with JSX."""

from collections.abc import Mapping

from handtools.core.syntax import SymbolKind
from handtools.host.syntax.grammar import Define, Grammar, Pattern, kinds, named, plain, simple, within

FUNCTIONS = ("arrow_function", "function_expression", "generator_function")
CALLABLE: Pattern = {"has": {"field": "value", **kinds(*FUNCTIONS)}}
_TOP = {
    "inside": {
        **kinds("lexical_declaration", "variable_declaration"),
        **within("program", "export_statement"),
    }
}
_AS_FUNCTION: Mapping[str, SymbolKind] = dict.fromkeys(FUNCTIONS, "function")

DEFINITIONS = {
    "class_declaration": Define("class", named("name")),
    "function_declaration": Define("function", named("name")),
    "generator_function_declaration": Define("function", named("name")),
    "method_definition": Define("method", named("name")),
    "variable_declarator": Define(
        "variable",
        simple("name", "identifier"),
        where={"any": [CALLABLE, _TOP]},
        refine=_AS_FUNCTION,
        body="value",
    ),
    "pair": Define("function", plain(named("key"), r"^['\"]|['\"]$"), where=CALLABLE, body="value"),
    "assignment_expression": Define(
        "function", named("left"), where={"has": {"field": "right", **kinds(*FUNCTIONS)}}, body="right"
    ),
}
WRAPPERS = frozenset({"export_statement"})
CALLS = {"call_expression": "function", "new_expression": "constructor"}
IMPORTS = ("import_statement",)
STRINGS = ("string", "template_string")

JAVASCRIPT = Grammar(
    language="javascript",
    definitions={
        **DEFINITIONS,
        "field_definition": Define("field", named("property"), refine=_AS_FUNCTION, body="value"),
    },
    wrappers=WRAPPERS,
    calls=CALLS,
    imports=IMPORTS,
    strings=STRINGS,
)
