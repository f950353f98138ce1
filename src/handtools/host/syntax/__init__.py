"""Parse source code with the tree-sitter grammars in ast-grep, for outlines, roles and pattern matches.

Start with `ast_grep_syntax`.
"""
