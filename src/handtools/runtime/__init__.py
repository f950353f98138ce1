"""Execution of tool calls: policy, approval, guarded ports, journal, undo. Start with `executor`."""
