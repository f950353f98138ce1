"""Containers of a Docker Engine: kept for a workspace, one command at a time, gone when we are."""
