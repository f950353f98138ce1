"""Syntax of the languages we know, over the grammars that ast-grep brings along. Start with `tree_syntax`."""
