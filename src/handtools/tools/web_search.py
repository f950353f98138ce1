"""Tool `web_search`: searches the web with the search engine that the user configured."""

from pydantic import BaseModel, Field

from handtools.core.context import Context
from handtools.core.result import Result
from handtools.core.tool import tool
from handtools.core.web import WebQuery
from handtools.tools.web.page_sections import mark_untrusted

MAX_WEB_RESULTS = 20


class WebSearchParams(BaseModel):
    """Arguments of the `web_search` tool."""

    query: str = Field(min_length=1, max_length=400, description="Search terms.")
    limit: int = Field(8, ge=1, le=MAX_WEB_RESULTS, description="Maximum number of results.")


class WebResult(BaseModel):
    """One result."""

    title: str
    url: str
    excerpt: str = ""
    published: str = ""


class WebSearchDetails(BaseModel):
    """Structured result of the `web_search` tool: the results and the engine."""

    engine: str
    untrusted: bool = True
    """Always true: host programs should treat titles and excerpts as data, not instructions."""
    results: list[WebResult]


@tool(effects=("visit",), needs="engine")
async def web_search(ctx: Context, params: WebSearchParams) -> Result[WebSearchDetails]:
    """Search the web."""
    found = await ctx.web.search(WebQuery(text=params.query, most=params.limit))
    results = [
        WebResult(title=each.title, url=each.url, excerpt=each.excerpt, published=each.published)
        for each in found.findings
    ]
    details = WebSearchDetails(engine=found.engine, results=results)
    if not results:
        return Result(f"{found.engine} found nothing for `{params.query}`.", details)
    rows = [_result_row(number, each) for number, each in enumerate(results, 1)]
    secret = f"{ctx.call.id} {params.query}"
    return Result(
        mark_untrusted(f"{len(results)} results from {found.engine}.", *rows, secret=secret), details
    )


def _result_row(number: int, result: WebResult) -> str:
    date = f" ({result.published})" if result.published else ""
    lines = (f"{number}. {result.title}{date}", f"   {result.url}", f"   {result.excerpt}")
    return "\n".join(line for line in lines if line.strip())
