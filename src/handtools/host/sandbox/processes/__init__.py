"""Processes started by a supervisor, read within bounds, limited, and killed with all they started. Start with
`running_process`; `supervisor` is the program at the other end."""
