"""The `handtools` command: `entry`, then `main`, then one module per command or group of commands."""
