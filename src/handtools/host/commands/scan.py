"""Scan: where no layer can be put over the workspace, it is looked at before and after a command."""
