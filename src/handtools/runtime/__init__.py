"""Runs calls: policy, approval, guards between tools and machine, journal, undo. Start with `executor`."""
