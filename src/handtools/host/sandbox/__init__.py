"""Sandboxed commands: runners, capture of file changes, network proxy, containers, supervisors.

Start with `launch`, then `runners.runner_selection` and `processes.running_process`.
"""
