"""Tables that map our tools to vendors' names, parameters and results; start with `dialect_tool`."""
