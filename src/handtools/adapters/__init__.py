"""The tools in agent SDKs, one module for each SDK; start with `provider_calls`, which they share. ADR 190."""
