"""Parse source code with the tree-sitter grammars in ast-grep: outlines, roles, patterns.

Start with `tree_syntax`.
"""
