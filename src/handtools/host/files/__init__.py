"""File access on this machine: path resolution, transactions, locks, backups, git, configuration files.

Start with `local_files`, then `path_resolution` and `transaction`.
"""
