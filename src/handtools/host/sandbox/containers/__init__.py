"""Docker containers kept for a workspace, each running one command at a time: see `container_pool`."""
