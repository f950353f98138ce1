"""What the search tools share: hits, ranked, paged and shown with the symbols around them."""
