"""Sandboxed commands: runners that confine them, capture of their changes, network proxy, containers, supervisors.

Start with `launch`, then `runners.runner_selection` and `processes.running_process`.
"""
