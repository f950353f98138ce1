"""Syntax rules for C, C++, C#, Go, Java, Kotlin, Rust, Scala and Swift: definitions, calls, imports."""

import re
from typing import TYPE_CHECKING

from handtools.host.syntax.grammar import (
    AstGrepRule,
    DefinitionRule,
    Grammar,
    SymbolName,
    child_name_finder,
    field_name_finder,
    fixed_name_finder,
    node_kind_rule,
    node_text_as_name,
    parent_kind_rule,
    symbol_name_finder_with_replacement,
)

if TYPE_CHECKING:
    from ast_grep_py import SgNode


_C_NESTED_DECLARATORS = {"parenthesized_declarator", "reference_declarator"}
_C_TEMPLATE_ARGUMENTS = re.compile(r"<[^<>]*>")
_C_BODY: AstGrepRule = {
    "has": {"field": "body", **node_kind_rule("field_declaration_list", "enumerator_list")}
}
_C_PREPROCESSOR = ("preproc_ifdef", "preproc_if", "preproc_else", "preproc_elif", "linkage_specification")
C_TOP_LEVEL: AstGrepRule = parent_kind_rule("translation_unit", "declaration_list", *_C_PREPROCESSOR)


def c_declarator_name(node: "SgNode") -> SymbolName | None:
    """Return the name inside a C declarator such as `*name(…)[…]`, which nests from the outside in."""
    found = node.field("declarator")
    while found is not None:
        deeper = found.field("declarator")
        if deeper is None and found.kind() in _C_NESTED_DECLARATORS:
            deeper = next(iter(found.named_children()), None)
        if deeper is None:
            break
        found = deeper
    name = node_text_as_name(found)
    return name and name._replace(text=_C_TEMPLATE_ARGUMENTS.sub("", name.text))


C_DEFINITIONS = {
    "function_definition": DefinitionRule("function", c_declarator_name),
    "declaration": DefinitionRule(
        "variable",
        c_declarator_name,
        where=C_TOP_LEVEL,
        refine={"function_declarator": "function"},
        body="declarator",
    ),
    "struct_specifier": DefinitionRule("struct", field_name_finder("name"), where=_C_BODY),
    "union_specifier": DefinitionRule("struct", field_name_finder("name"), where=_C_BODY),
    "enum_specifier": DefinitionRule("enum", field_name_finder("name"), where=_C_BODY),
    "type_definition": DefinitionRule(
        "type",
        c_declarator_name,
        refine={"struct_specifier": "struct", "enum_specifier": "enum"},
        body="type",
    ),
    "preproc_def": DefinitionRule("constant", field_name_finder("name")),
    "preproc_function_def": DefinitionRule("macro", field_name_finder("name")),
}
C_STRINGS = ("string_literal", "raw_string_literal", "system_lib_string")

C = Grammar(
    language="c",
    definitions=C_DEFINITIONS,
    calls={"call_expression": "function"},
    imports=("preproc_include",),
    strings=("string_literal",),
)

_CPP_METHOD = {"has": {"kind": "function_declarator", "stopBy": {"kind": "field_declaration_list"}}}

CPP = Grammar(
    language="cpp",
    definitions={
        **C_DEFINITIONS,
        "class_specifier": DefinitionRule(
            "class", field_name_finder("name"), where=C_DEFINITIONS["struct_specifier"].where
        ),
        "namespace_definition": DefinitionRule("namespace", field_name_finder("name")),
        "field_declaration": DefinitionRule("method", c_declarator_name, where=_CPP_METHOD),
        "alias_declaration": DefinitionRule("type", field_name_finder("name")),
        "concept_definition": DefinitionRule("type", field_name_finder("name")),
    },
    wrappers=frozenset({"template_declaration"}),
    calls={"call_expression": "function", "new_expression": "type"},
    imports=("preproc_include", "using_declaration"),
    strings=("string_literal", "raw_string_literal"),
)


def _csharp_field_name(node: "SgNode") -> SymbolName | None:
    """Return the name of a C# field such as `public int X = 1;`, which is two levels down in the tree."""
    for part in node.children():
        if part.kind() == "variable_declaration":
            found = next((d for d in part.children() if d.kind() == "variable_declarator"), None)
            return node_text_as_name(found and found.field("name"))
    return None


CSHARP = Grammar(
    language="csharp",
    definitions={
        "namespace_declaration": DefinitionRule("namespace", field_name_finder("name")),
        "class_declaration": DefinitionRule("class", field_name_finder("name")),
        "record_declaration": DefinitionRule("class", field_name_finder("name")),
        "struct_declaration": DefinitionRule("struct", field_name_finder("name")),
        "interface_declaration": DefinitionRule("interface", field_name_finder("name")),
        "enum_declaration": DefinitionRule("enum", field_name_finder("name")),
        "delegate_declaration": DefinitionRule("type", field_name_finder("name")),
        "method_declaration": DefinitionRule("method", field_name_finder("name")),
        "constructor_declaration": DefinitionRule("method", field_name_finder("name")),
        "destructor_declaration": DefinitionRule("method", field_name_finder("name")),
        "local_function_statement": DefinitionRule("function", field_name_finder("name")),
        "property_declaration": DefinitionRule("property", field_name_finder("name"), body="accessors"),
        "field_declaration": DefinitionRule("field", _csharp_field_name),
    },
    calls={"invocation_expression": "function", "object_creation_expression": "type"},
    imports=("using_directive",),
    strings=(
        "string_literal",
        "verbatim_string_literal",
        "interpolated_string_expression",
        "raw_string_literal",
    ),
)


_GO_RECEIVER = re.compile(r"(\w+)\s*(?:\[[^\]]*\])?\s*\)?\s*\Z")


def _go_method_name(node: "SgNode") -> SymbolName | None:
    """Return the name of a Go method with its receiver's type: `func (s *Store) Load()` is `Store.Load`."""
    name, receiver = node_text_as_name(node.field("name")), node.field("receiver")
    owner = receiver and _GO_RECEIVER.search(receiver.text())
    return name and name._replace(text=f"{owner[1]}.{name.text}" if owner else name.text)


_GO_TOP_LEVEL = {"inside": {"kind": "source_file", "stopBy": {"any": [{"kind": "block"}]}}}

GO = Grammar(
    language="go",
    definitions={
        "function_declaration": DefinitionRule("function", field_name_finder("name")),
        "method_declaration": DefinitionRule("method", _go_method_name),
        "type_spec": DefinitionRule(
            "type",
            field_name_finder("name"),
            refine={"struct_type": "struct", "interface_type": "interface"},
            body="type",
        ),
        "type_alias": DefinitionRule("type", field_name_finder("name")),
        "const_spec": DefinitionRule(
            "constant", field_name_finder("name"), where=_GO_TOP_LEVEL, body="value"
        ),
        "var_spec": DefinitionRule(
            "variable", field_name_finder("name"), where=_GO_TOP_LEVEL, body="value"
        ),
        "field_declaration": DefinitionRule("field", field_name_finder("name")),
        "method_elem": DefinitionRule("method", field_name_finder("name")),
    },
    calls={"call_expression": "function"},
    imports=("import_declaration", "import_spec"),
    strings=("interpreted_string_literal", "raw_string_literal"),
)

JAVA = Grammar(
    language="java",
    definitions={
        "class_declaration": DefinitionRule("class", field_name_finder("name")),
        "interface_declaration": DefinitionRule("interface", field_name_finder("name")),
        "annotation_type_declaration": DefinitionRule("interface", field_name_finder("name")),
        "enum_declaration": DefinitionRule("enum", field_name_finder("name")),
        "record_declaration": DefinitionRule("class", field_name_finder("name")),
        "method_declaration": DefinitionRule("method", field_name_finder("name")),
        "constructor_declaration": DefinitionRule("method", field_name_finder("name")),
        "compact_constructor_declaration": DefinitionRule("method", field_name_finder("name")),
        "annotation_type_element_declaration": DefinitionRule("method", field_name_finder("name")),
        "field_declaration": DefinitionRule(
            "field", field_name_finder("declarator", "name"), body="declarator"
        ),
        "constant_declaration": DefinitionRule(
            "constant", field_name_finder("declarator", "name"), body="declarator"
        ),
    },
    calls={"method_invocation": "name", "object_creation_expression": "type"},
    imports=("import_declaration", "package_declaration"),
    comments=("line_comment", "block_comment"),
    strings=("string_literal",),
)


_KOTLIN_TOP_LEVEL = parent_kind_rule("source_file", "class_body", "enum_class_body")


def _kotlin_property_name(node: "SgNode") -> SymbolName | None:
    found = next((part for part in node.children() if part.kind() == "variable_declaration"), None)
    return node_text_as_name(found and next(iter(found.named_children()), None))


KOTLIN = Grammar(
    language="kotlin",
    definitions={
        "class_declaration": DefinitionRule(
            "class",
            child_name_finder("type_identifier"),
            refine={"interface": "interface", "enum": "enum"},
            body="class_body",
        ),
        "object_declaration": DefinitionRule(
            "class", child_name_finder("type_identifier"), body="class_body"
        ),
        "function_declaration": DefinitionRule(
            "function", child_name_finder("simple_identifier"), body="function_body"
        ),
        "property_declaration": DefinitionRule("property", _kotlin_property_name, where=_KOTLIN_TOP_LEVEL),
        "type_alias": DefinitionRule("type", child_name_finder("type_identifier")),
    },
    calls={"call_expression": ""},
    imports=("import_header", "package_header"),
    comments=("line_comment", "multiline_comment"),
    strings=("string_literal",),
)

RUST = Grammar(
    language="rust",
    definitions={
        "function_item": DefinitionRule("function", field_name_finder("name")),
        "function_signature_item": DefinitionRule("function", field_name_finder("name")),
        "struct_item": DefinitionRule("struct", field_name_finder("name")),
        "union_item": DefinitionRule("struct", field_name_finder("name")),
        "enum_item": DefinitionRule("enum", field_name_finder("name")),
        "trait_item": DefinitionRule("trait", field_name_finder("name")),
        # An `impl` is named after its type, so that `Type.method` finds a method in any of them.
        "impl_item": DefinitionRule(
            "impl", symbol_name_finder_with_replacement(field_name_finder("type"), r"<.*")
        ),
        "mod_item": DefinitionRule("namespace", field_name_finder("name")),
        "const_item": DefinitionRule("constant", field_name_finder("name"), body="value"),
        "static_item": DefinitionRule("variable", field_name_finder("name"), body="value"),
        "type_item": DefinitionRule("type", field_name_finder("name"), body="type"),
        "associated_type": DefinitionRule("type", field_name_finder("name")),
        "macro_definition": DefinitionRule("macro", field_name_finder("name")),
        "field_declaration": DefinitionRule(
            "field",
            field_name_finder("name"),
            where={"inside": {"kind": "field_declaration_list", "inside": {"kind": "struct_item"}}},
        ),
    },
    prefixes=frozenset({"attribute_item"}),
    calls={"call_expression": "function", "macro_invocation": "macro"},
    imports=("use_declaration", "extern_crate_declaration"),
    comments=("line_comment", "block_comment"),
    strings=("string_literal", "raw_string_literal"),
)

_SCALA_TOP_LEVEL = parent_kind_rule("compilation_unit", "template_body")

SCALA = Grammar(
    language="scala",
    definitions={
        "class_definition": DefinitionRule("class", field_name_finder("name")),
        "object_definition": DefinitionRule("class", field_name_finder("name")),
        "trait_definition": DefinitionRule("trait", field_name_finder("name")),
        "enum_definition": DefinitionRule("enum", field_name_finder("name")),
        "function_definition": DefinitionRule("function", field_name_finder("name")),
        "function_declaration": DefinitionRule("function", field_name_finder("name")),
        "type_definition": DefinitionRule("type", field_name_finder("name")),
        "val_definition": DefinitionRule(
            "constant", field_name_finder("pattern"), where=_SCALA_TOP_LEVEL, body="value"
        ),
        "var_definition": DefinitionRule(
            "variable", field_name_finder("pattern"), where=_SCALA_TOP_LEVEL, body="value"
        ),
        "val_declaration": DefinitionRule("constant", field_name_finder("name"), where=_SCALA_TOP_LEVEL),
        "var_declaration": DefinitionRule("variable", field_name_finder("name"), where=_SCALA_TOP_LEVEL),
    },
    calls={"call_expression": "function"},
    imports=("import_declaration", "package_clause"),
    comments=("comment", "block_comment"),
    strings=("string", "interpolated_string_expression"),
)

_SWIFT_TOP_LEVEL = parent_kind_rule("source_file", "class_body", "enum_class_body", "protocol_body")

SWIFT = Grammar(
    language="swift",
    definitions={
        "class_declaration": DefinitionRule(
            "class",
            symbol_name_finder_with_replacement(child_name_finder("type_identifier", "user_type"), r"<.*"),
            refine={"struct": "struct", "enum": "enum", "extension": "impl"},
        ),
        "protocol_declaration": DefinitionRule("interface", field_name_finder("name")),
        "function_declaration": DefinitionRule("function", child_name_finder("simple_identifier")),
        "protocol_function_declaration": DefinitionRule("function", child_name_finder("simple_identifier")),
        "init_declaration": DefinitionRule("method", fixed_name_finder("init")),
        "deinit_declaration": DefinitionRule("method", fixed_name_finder("deinit")),
        "property_declaration": DefinitionRule(
            "property", child_name_finder("pattern"), where=_SWIFT_TOP_LEVEL, body="computed_property"
        ),
        "protocol_property_declaration": DefinitionRule(
            "property",
            symbol_name_finder_with_replacement(child_name_finder("pattern"), r"^(?:var|let)\s+"),
        ),
        "typealias_declaration": DefinitionRule("type", child_name_finder("type_identifier")),
    },
    calls={"call_expression": ""},
    imports=("import_declaration",),
    comments=("comment", "multiline_comment"),
    strings=("line_string_literal", "multi_line_string_literal", "raw_string_literal"),
)
