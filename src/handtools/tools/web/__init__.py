"""Code shared by the web tools: sections of a page, and the note about text from the web."""
