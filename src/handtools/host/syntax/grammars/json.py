"""JSON: keys, as deep as they go."""

from handtools.host.syntax.grammar import Define, Grammar, named, plain

JSON = Grammar(
    language="json",
    definitions={"pair": Define("key", plain(named("key"), r"^\"|\"$"), body="value")},
    strings=("string",),
)
