"""Clients that are set up by a configuration file. Start with `client_setup`."""
