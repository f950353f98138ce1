"""Code shared by the search tools: ranks, pages and shows hits with their enclosing symbols."""
