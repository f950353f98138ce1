"""Containers of a Docker Engine: kept for a workspace, one command at a time. Start with `container_pool`."""
