"""Attacks on the host side, a module for each family: every public coroutine function is one.

A new attack is a function that takes a `Place`, with one sentence that says what it tries.
"""
