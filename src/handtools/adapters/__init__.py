"""Adapters to agent SDKs, one module per SDK; start with `provider_calls`, which they share."""
