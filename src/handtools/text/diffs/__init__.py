"""Line diffs of texts: minimal alignment, unified diffs, three-way merges. Start with `unified_diff`."""
