"""Test helpers for authors of tools and hosts: contract tests, an in-memory toolbox and stubs.

Start with `contract`.
"""
