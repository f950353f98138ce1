"""The screen of `handtools watch`, drawn with Textual: start with `watch_app`."""
