"""Code shared by the search tools: hits ranked, paged and shown with their enclosing symbols."""
