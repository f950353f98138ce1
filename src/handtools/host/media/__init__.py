"""Readers of files that are not plain text, each used only where its library is installed."""
