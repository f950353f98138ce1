"""The web of this machine: pages and searches."""
