"""Processes confined, captured and ended: runners, overlays, proxy, containers, supervisors.

Start with `launch`, then `runners.runner_selection` and `processes.running_process`.
"""
