"""The tools, one module and one prompt each."""
