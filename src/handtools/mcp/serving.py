"""Serving: a desk and its neighbours as the methods of one server."""

from typing import TYPE_CHECKING

from handtools.mcp.desk import Desk
from handtools.mcp.registry import Method, Registry

if TYPE_CHECKING:
    from handtools.mcp.roots import Roots


def server(desk: Desk, roots: "Roots | None" = None) -> Registry:
    """Everything that a client can ask of a desk."""
    from mcp_types import (
        CallToolRequestParams,
        GetPromptRequestParams,
        NotificationParams,
        PaginatedRequestParams,
        ReadResourceRequestParams,
    )

    from handtools.mcp.extension import Asked, Extension
    from handtools.mcp.prompts import Prompts
    from handtools.mcp.resources import Resources

    registry = Registry()
    resources, prompts = Resources(desk), Prompts(desk)
    registry.requests |= {
        "tools/list": Method(PaginatedRequestParams, desk.list_tools),
        "tools/call": Method(CallToolRequestParams, desk.call_tool),
        "resources/list": Method(PaginatedRequestParams, resources.list),
        "resources/templates/list": Method(PaginatedRequestParams, resources.templates),
        "resources/read": Method(ReadResourceRequestParams, resources.read),
        "prompts/list": Method(PaginatedRequestParams, prompts.list),
        "prompts/get": Method(GetPromptRequestParams, prompts.get),
    }
    registry.requests |= {
        name: Method(Asked, respond) for name, respond in Extension(desk).methods().items()
    }
    if roots is not None:
        registry.requests["tools/call"] = Method(CallToolRequestParams, roots.call_tool)
        registry.notifications["notifications/roots/list_changed"] = Method(
            NotificationParams, roots.changed
        )
    return registry
