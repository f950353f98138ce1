"""Parse source code with the tree-sitter grammars in ast-grep: outlines, roles, patterns.

Start with `ast_grep_syntax`.
"""
