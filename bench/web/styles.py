"""Styles: a document as eleven makers of documentation put it into HTML. The structure is theirs, the text ours."""

# ruff: noqa: E501 — markup is as long as its makers write it

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from bench.web.documents import Block, Code, Document, Part, Points, Table


@dataclass(frozen=True)
class Style:
    """How one maker writes headings, samples and the frame around a page."""

    name: str
    heading: Callable[[int, str], str]
    code: Callable[[Code], str]
    frame: Callable[[str, str], str]
    table: Callable[[Table], str] | None = None


def page(document: Document, style: Style) -> str:
    """A document as a page of a style."""
    body = "\n".join([style.heading(1, document.title), *(_part(part, style) for part in document.parts)])
    return style.frame(escape(document.title), body)


def _part(part: Part, style: Style) -> str:
    blocks = "\n".join(_block(block, style) for block in part.blocks)
    return (
        f'<section id="{slug(part.title)}">\n{style.heading(part.level, part.title)}\n{blocks}\n</section>'
    )


def _block(block: Block, style: Style) -> str:
    if isinstance(block, Code):
        return style.code(block)
    if isinstance(block, Table):
        return (style.table or plain_table)(block)
    if isinstance(block, Points):
        return "<ul>" + "".join(f"<li><p>{escape(item)}</p></li>" for item in block.items) + "</ul>"
    words = [f"<code>{escape(w)}</code>" if not w.isalpha() else w for w in block.words]
    return f"<p>{' '.join(words)} <em>so</em> see <a href='../other.html#x'>there</a>.</p>"


def slug(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower())


def plain_table(table: Table, name: str = "docutils") -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.head)
    rows = "".join(
        "<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>\n" for row in table.rows
    )
    return f'<table class="{name}"><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table>'


def _cell(cell: str) -> str:
    return f"<code>{escape(cell)}</code>" if cell and not cell[0].isalnum() else escape(cell)


def spans(text: str, name: str = "n") -> str:
    """Every word in a span of its own, as highlighters leave it."""
    pieces = re.split(r"(\w+)", text)
    return "".join(
        f'<span class="{name}">{piece}</span>' if at % 2 else escape(piece, quote=False)
        for at, piece in enumerate(pieces)
    )


def numbers(code: Code) -> str:
    return "\n".join(str(line) for line in range(1, code.text.count("\n") + 1))


def chrome(title: str, body: str, *, main: str = "main", head: str = "") -> str:
    """What is around the text of every page: a menu, scripts, a footer."""
    menu = "".join(f'<li class="toc"><a href="p{n}.html">Page {n}</a></li>' for n in range(25))
    return (
        f"<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>{title} — Docs</title>"
        f"<script>var q = '<h1>no heading</h1>';</script><style>h1 {{ color: red }}</style>{head}</head>\n"
        f"<body><nav class='menu'><ul>{menu}</ul></nav>\n<{main}>\n{body}\n</{main}>\n"
        f"<footer><p>Made with care. <a href='/about'>About</a></p></footer><script src='/s.js'></script></body></html>"
    )


def sphinx_code(code: Code) -> str:
    body = f'<div class="highlight"><pre><span></span>{spans(code.text)}</pre></div>'
    if code.numbered:
        body = (
            '<table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre>'
            f'{spans(numbers(code), "normal")}</pre></div></td><td class="code"><div>{body}</div></td></tr></table>'
        )
    return f'<div class="highlight-{code.language} notranslate">{body}</div>'


def sphinx_heading(level: int, title: str) -> str:
    link = f'<a class="headerlink" href="#{slug(title)}" title="Link to this heading">¶</a>'
    return f"<h{level}>{escape(title)}{link}</h{level}>"


def mkdocs_code(code: Code) -> str:
    lines = "".join(
        f'<a id="__codelineno-0-{n}" name="__codelineno-0-{n}" href="#__codelineno-0-{n}"></a>{spans(line)}'
        for n, line in enumerate(code.text.splitlines(keepends=True), 1)
    )
    inner = f'<pre id="__code_0"><span></span><code>{lines}</code></pre>'
    if code.numbered:
        return (
            f'<div class="language-{code.language} highlight"><table class="highlighttable"><tbody><tr>'
            f'<td class="linenos"><div class="linenodiv"><pre>{numbers(code)}</pre></div></td>'
            f'<td class="code"><div>{inner}</div></td></tr></tbody></table></div>'
        )
    return f'<div class="language-{code.language} highlight">{inner}</div>'


def docusaurus_heading(level: int, title: str) -> str:
    if level == 1:
        return f"<header><h1>{escape(title)}</h1></header>"
    link = f'<a href="#{slug(title)}" class="hash-link" aria-label="Direct link" title="Direct link">\u200b</a>'
    return f'<h{level} class="anchor anchorWithStickyNavbar_LWe7" id="{slug(title)}">{escape(title)}{link}</h{level}>'


def docusaurus_code(code: Code) -> str:
    lines = "".join(
        f'<span class="token-line" style="color:#393A34">{spans(line, "token plain") if line else ""}<br></span>'
        for line in code.text.splitlines()
    )
    kind = f"language-{code.language}"
    return (
        f'<div class="{kind} codeBlockContainer_Ckt0"><div class="codeBlockContent_biex">'
        f'<pre tabindex="0" class="prism-code {kind} codeBlock_bY9V"><code class="codeBlockLines_e6Vv">{lines}</code>'
        f'</pre><div class="buttonGroup__atx"><button type="button" aria-label="Copy">'
        f'<span aria-hidden="true"></span></button></div></div></div>'
    )


def rustdoc_heading(level: int, title: str) -> str:
    if level == 1:
        return (
            f'<div class="main-heading"><h1>Struct <span class="struct">{escape(title)}</span></h1></div>'
        )
    return f'<h{level} id="{slug(title)}"><a class="doc-anchor" href="#{slug(title)}">§</a>{escape(title)}</h{level}>'


def rustdoc_code(code: Code) -> str:
    if code.language == "rust":
        return (
            '<div class="example-wrap"><pre class="rust rust-example-rendered"><code>'
            f"{spans(code.text, 'kw')}</code></pre></div>"
        )
    return f'<div class="example-wrap"><pre class="language-{code.language}"><code>{escape(code.text)}</code></pre></div>'


def javadoc_code(code: Code) -> str:
    return (
        f'<div class="block"><pre class="snippet"><code>{escape(code.text, quote=False)}</code></pre></div>'
    )


def mdn_heading(level: int, title: str) -> str:
    inner = escape(title) if level == 1 else f'<a href="#{slug(title)}">{escape(title)}</a>'
    return f'<h{level} id="{slug(title)}">{inner}</h{level}>'


def mdn_code(code: Code) -> str:
    return (
        f'<div class="code-example"><div class="example-header"><span class="language-name">{code.language}</span>'
        f'<button type="button" class="icon copy-icon"><span class="visually-hidden">Copy</span></button></div>'
        f'<pre class="brush: {code.language} notranslate"><code>{spans(code.text, "token keyword")}</code></pre></div>'
    )


def mdn_table(table: Table) -> str:
    return f'<figure class="table-container">{plain_table(table, "no-markdown")}</figure>'


def github_heading(level: int, title: str) -> str:
    return (
        f'<div class="markdown-heading" dir="auto"><h{level} tabindex="-1" class="heading-element">{escape(title)}'
        f'</h{level}><a id="user-content-{slug(title)}" class="anchor" aria-label="Permalink" href="#{slug(title)}">'
        '<svg class="octicon octicon-link" viewBox="0 0 16 16"><path d="m7 3"></path></svg></a></div>'
    )


def github_code(code: Code) -> str:
    return (
        f'<div class="highlight highlight-source-{code.language} notranslate position-relative overflow-auto" dir="auto">'
        f'<pre>{spans(code.text, "pl-k")}</pre><div class="zeroclipboard-container"><clipboard-copy value="{escape(code.text)}">'
        "</clipboard-copy></div></div>"
    )


def github_table(table: Table) -> str:
    return f"<markdown-accessiblity-table>{plain_table(table, 'gh')}</markdown-accessiblity-table>"


def go_heading(level: int, title: str) -> str:
    return f'<h{level} tabindex="-1" id="hdr-{slug(title)}">{escape(title)} <a class="Documentation-idLink" href="#x" aria-label="Go to">¶</a></h{level}>'


def go_code(code: Code) -> str:
    return f"<pre>{escape(code.text, quote=False)}</pre>"


def typedoc_code(code: Code) -> str:
    text = spans(code.text, "hl-0").replace("\n", "<br/>")
    return f'<pre><code class="{code.language}">{text}</code><button type="button">Copy</button></pre>'


def asciidoctor_code(code: Code) -> str:
    return (
        f'<div class="listingblock"><div class="title">Sample</div><div class="content"><pre class="highlightjs highlight">'
        f'<code class="language-{code.language} hljs" data-lang="{code.language}">{escape(code.text)}</code></pre></div></div>'
    )


def asciidoctor_table(table: Table) -> str:
    widths = "".join("<col style='width: 33%'>" for _ in table.head)
    head = "".join(f'<th class="tableblock halign-left">{escape(cell)}</th>' for cell in table.head)
    rows = "".join(
        "<tr>"
        + "".join(f'<td class="tableblock"><p class="tableblock">{_cell(c)}</p></td>' for c in row)
        + "</tr>"
        for row in table.rows
    )
    return f'<table class="tableblock frame-all"><colgroup>{widths}</colgroup><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def hugo_code(code: Code) -> str:
    lines = "".join(
        f'<span style="display:flex;"><span>{spans(line, "nx")}\n</span></span>'
        for line in code.text.splitlines()
    )
    kind = code.language
    return (
        f'<div class="highlight"><pre tabindex="0" style="background-color:#f8f8f8;"><code class="language-{kind}" '
        f'data-lang="{kind}">{lines}</code></pre></div>'
    )


def _plain_heading(level: int, title: str) -> str:
    return f'<h{level} id="{slug(title)}">{escape(title)}</h{level}>'


STYLES = (
    Style("sphinx", sphinx_heading, sphinx_code, lambda t, b: chrome(t, f'<div class="document"><div role="main">{b}</div></div>', main="div")),
    Style("mkdocs", sphinx_heading, mkdocs_code, lambda t, b: chrome(t, f'<article class="md-content__inner">{b}</article>')),
    Style("docusaurus", docusaurus_heading, docusaurus_code, lambda t, b: chrome(t, f"<article><div class='theme-doc-markdown markdown'>{b}</div></article>")),
    Style("rustdoc", rustdoc_heading, rustdoc_code, lambda t, b: chrome(t, f'<section id="main-content" class="content">{b}</section>')),
    Style("javadoc", _plain_heading, javadoc_code, chrome),
    Style("mdn", mdn_heading, mdn_code, lambda t, b: chrome(t, f'<article class="main-page-content">{b}</article>'), table=mdn_table),
    Style("github", github_heading, github_code, lambda t, b: chrome(t, f'<article class="markdown-body entry-content">{b}</article>'), table=github_table),
    Style("pkg.go.dev", go_heading, go_code, lambda t, b: chrome(t, f'<div class="UnitReadme">{b}</div>')),
    Style("typedoc", _plain_heading, typedoc_code, lambda t, b: chrome(t, f'<div class="tsd-panel tsd-typography">{b}</div>', main="div")),
    Style("asciidoctor", _plain_heading, asciidoctor_code, lambda t, b: chrome(t, f'<div id="content">{b}</div>', main="div"), table=asciidoctor_table),
    Style("hugo", _plain_heading, hugo_code, lambda t, b: chrome(t, f'<div class="td-content">{b}</div>')),
)  # fmt: skip
"""Each page of the corpus takes the next."""
