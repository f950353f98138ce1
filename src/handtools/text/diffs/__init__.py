"""Diffs between texts: minimal alignments, unified diffs, three-way merges. Start with `unified_diff`."""
