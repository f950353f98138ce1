"""Test helpers for authors of tools and hosts: contract tests, an in-memory toolbox, stubs.

Start with `contract`.
"""
