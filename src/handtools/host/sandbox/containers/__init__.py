"""Docker containers that a workspace reuses, each running one command at a time: see `container_pool`."""
