"""File access on this machine: path resolution, transactions, locks, backups, the user's folders.

Start with `local_files`, then `path_resolution` and `transaction`.
"""
