"""The tools under the names, parameters and answers that vendors' models know: a table for each; start with
`dialect_tool`. ADR 212.
"""
