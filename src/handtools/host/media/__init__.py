"""Previews of files that are not plain text, where their library is installed. Start with `local_media`."""
