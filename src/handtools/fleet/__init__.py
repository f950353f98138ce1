"""Thousands of workspaces on many machines: templates, layers, hosts, and a toolbox that speaks to them.

Who works in one folder on one machine needs none of this. Start with `workspaces`, then `host`.
"""
