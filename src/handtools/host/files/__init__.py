"""The workspace on disk and what is kept beside it.

Start with `local_files`, then `path_resolution` and `transaction`.
"""
