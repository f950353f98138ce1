"""Names for everything that the other packages speak of."""
