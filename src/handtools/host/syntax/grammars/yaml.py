"""YAML: keys of block mappings."""

from handtools.host.syntax.grammar import Define, Grammar, named, plain

YAML = Grammar(
    language="yaml",
    definitions={"block_mapping_pair": Define("key", plain(named("key"), r"^['\"]|['\"]$"), body="value")},
    strings=("double_quote_scalar", "single_quote_scalar", "block_scalar"),
)
