"""Tool `fetch`: fetches a web page and returns it as text, one part at a time."""

from pydantic import BaseModel, Field

from handtools.core import web
from handtools.core.context import Context
from handtools.core.errors import InvalidInput, NotFound, WrongKind
from handtools.core.media import PreviewRequest
from handtools.core.result import Image, Result, Text
from handtools.core.tool import tool
from handtools.core.web import PageForm, WebPage
from handtools.text.paths import similar_names
from handtools.text.token_estimate import estimate_tokens
from handtools.tools.web.page_sections import (
    estimate_page_tokens,
    mark_untrusted,
    page_cursor,
    parse_page_cursor,
    passages_mentioning,
    portion_that_fits,
    section_titled,
    sections,
    table_of_contents,
)

PAGE_BYTES = web.MAX_WEB_PAGE_BYTES
DEFAULT_FETCH_TOKENS = 8_000
MAX_HEADINGS = 60
MAX_DOCUMENT_PREVIEWS = 100
"""Maximum number of previews made of one document; each covers forty pages."""


class FetchParams(BaseModel):
    """Arguments of the `fetch` tool."""

    url: str = Field(description="The page's address, with https:// or http://.")
    format: PageForm = Field("markdown", description="Form of the page.")
    section: str | None = Field(None, description="Title of the section to show.")
    find: str | None = Field(None, min_length=1, description="Show only passages with these words.")
    max_tokens: int = Field(DEFAULT_FETCH_TOKENS, ge=100, le=14_000, description="Most tokens to show.")
    cursor: str | None = Field(None, description="Continues an earlier result.")


class FetchDetails(BaseModel):
    """Structured result of the `fetch` tool: URL, title, media type, size, sections and cursor."""

    url: str
    """Final URL, after redirects."""
    untrusted: bool = True
    """Always true: host programs should treat the page's text as data, not instructions."""
    title: str = ""
    media_type: str = ""
    encoding: str = ""
    bytes: int = 0
    tokens: int = 0
    """Number of tokens of the requested text, including text that is not shown."""
    shown_tokens: int = 0
    cursor: str | None = None
    sections: list[str] = Field(default=[])
    redirects: list[str] = Field(default=[])
    kept: bool = False
    """Whether the page came from the cache, without a request."""


@tool(effects=("visit",))
async def fetch(ctx: Context, params: FetchParams) -> Result[FetchDetails]:
    """Fetch a web page."""
    going_on = any((params.cursor, params.section, params.find))
    page = await ctx.web.fetch(params.url, params.format, kept=going_on)
    whole, images = await _page_text_and_pictures(ctx, page)
    body = _requested_section_or_passages(whole, params)
    start, same = _start_offset_from_cursor(body, params)
    part = portion_that_fits(body, start, params.max_tokens)
    more = part.end < len(body)
    details = FetchDetails(
        url=page.url,
        title=page.rendered.title,
        media_type=page.media_type,
        encoding=page.rendered.encoding,
        bytes=len(page.data),
        tokens=estimate_page_tokens(body),
        shown_tokens=estimate_tokens(part.text),
        cursor=page_cursor(body, part.end) if more else None,
        sections=[section.title for section in sections(whole)[:MAX_HEADINGS]],
        redirects=list(page.hops),
        kept=page.kept,
    )
    text = _text_marked_untrusted(ctx, details, part.text, _section_listing(whole, params) if more else "")
    if more:
        text += (
            f"\n({details.shown_tokens:,} of {details.tokens:,} tokens."
            f" Continue with cursor={details.cursor}.)"
        )
    if not same:
        text += "\n(The page has changed since; this is the same position in the new version.)"
    return Result((Text(text), *images), details)


async def _page_text_and_pictures(ctx: Context, page: WebPage) -> tuple[str, tuple[Image, ...]]:
    """Convert the page to text and pictures."""
    if page.rendered.text is not None:
        return page.rendered.text, ()
    name = page.url.partition("?")[0].rpartition("/")[2] or page.url
    text, images, request = "", tuple[Image, ...](), PreviewRequest()
    for _ in range(MAX_DOCUMENT_PREVIEWS):
        shown = await ctx.media.preview(name, page.data, request)
        if shown is None:
            kind = ctx.media.describe(page.data) or page.media_type or "unknown type"
            message = f"{page.url} is not text: {kind}, {len(page.data):,} bytes."
            raise WrongKind(message, hint="Download it with a command, or fetch another page.")
        text, images = f"{text or f'({shown.title}.)'}\n{shown.text}", (*images, *shown.images)
        if shown.next_page is None:
            break
        request = PreviewRequest(first=shown.next_page)
    return text, images


def _requested_section_or_passages(whole: str, params: FetchParams) -> str:
    """Return the requested section, or the passages that match the requested text."""
    if params.section is not None:
        found = sections(whole)
        section = section_titled(found, params.section)
        if section is None:
            titles = [each.title for each in found]
            close = similar_names(params.section, titles) or titles[:20]
            hint = (
                f"Its sections: {'; '.join(close)}."
                if close
                else "It has no sections; leave out `section`."
            )
            raise NotFound(f"The page has no section `{params.section}`.", hint=hint)
        whole = whole[section.start : section.end]
    if params.find is None:
        return whole
    places = passages_mentioning(whole, params.find)
    if not places:
        raise NotFound(f"`{params.find}` is not on the page.", hint="Try fewer words, or leave out `find`.")
    return "\n\n".join(places)


def _start_offset_from_cursor(body: str, params: FetchParams) -> tuple[int, bool]:
    if params.cursor is None:
        return 0, True
    try:
        return parse_page_cursor(body, params.cursor)
    except ValueError as problem:
        raise InvalidInput(f"`cursor`: {problem}.", hint="Leave it out to start again.") from None


def _text_marked_untrusted(ctx: Context, details: FetchDetails, text: str, listing: str) -> str:
    kind = details.media_type or "no type given"
    told = f"{details.url} ({kind}, {details.bytes:,} bytes)."
    title = f"Title: {details.title}" if details.title else ""
    return mark_untrusted(told, title, text.rstrip(), listing, secret=f"{ctx.call.id} {details.url}")


def _section_listing(whole: str, params: FetchParams) -> str:
    """Return the list of headings for the first view of a page."""
    found = sections(whole)
    if params.section or params.find or params.cursor or not found:
        return ""
    return f"\n[Sections of the page]\n{table_of_contents(whole, found, most=MAX_HEADINGS)}"
