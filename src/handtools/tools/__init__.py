"""The tools offered to models, one module and one prompt each; shared code is in `editing`, `reading`,
`search`.
"""
