"""The terminal UI of `handtools watch`, built with Textual; start with `watch_app`."""
