"""Host-side attacks that were written after the code was frozen (tag `freeze-14`); the form is that of `attacks/`.

They are not tuned to what they find: an attack that got through stays as it was when it was first run.
"""
