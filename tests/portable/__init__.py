"""The suite where parts of Linux are missing: `pytest -p tests.portable.plugin --hide openat2,leases PATHS`."""
