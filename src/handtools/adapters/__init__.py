"""Adapters to agent SDKs, one module per SDK; they all build on `provider_calls`, so read that first."""
