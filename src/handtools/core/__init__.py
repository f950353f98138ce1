"""The values and ports that every other package speaks of. Start with `call`, `result`, `context` and `tool`."""
