"""Value types, errors and port protocols for every other package; start with `call`, `result`, `context`,
`tool`.
"""
