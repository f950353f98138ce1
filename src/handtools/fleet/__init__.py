"""Thousands of workspaces on many machines: templates, layers, hosts, and a toolbox client for them.

Not needed to work in one folder on one machine. Start with `workspaces`, then `host`.
"""
