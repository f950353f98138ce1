"""Ruby."""

from handtools.host.syntax.grammar import Define, Grammar, named, simple

RUBY = Grammar(
    language="ruby",
    definitions={
        "module": Define("namespace", named("name")),
        "class": Define("class", named("name")),
        "method": Define("function", named("name")),
        "singleton_method": Define("function", named("name")),
        "assignment": Define("constant", simple("left", "constant"), body="right"),
    },
    calls={"call": "method"},
    imports=(),
    strings=("string", "heredoc_body"),
)
