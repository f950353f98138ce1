"""Processes that a supervisor starts, limits and kills with all their children, and their bounded output.

Start with `running_process`; `supervisor` is the program at the other end.
"""
