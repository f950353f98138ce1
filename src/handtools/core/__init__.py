"""Value types, errors and ports for all other packages; start with `call`, `result`, `context`, `tool`."""
