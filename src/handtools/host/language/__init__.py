"""Language servers of this machine."""
