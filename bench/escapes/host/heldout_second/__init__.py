"""A second round of held-out attacks, for issue 33; the form is that of `attacks/`.

They were written by somebody who did not write the fixes and did not see them, against the code from before.
An attack that got through stays as it was when it was first run.
"""
