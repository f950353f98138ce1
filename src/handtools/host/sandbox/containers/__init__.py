"""Docker containers kept for a workspace, each running one command at a time. Start with `container_pool`."""
