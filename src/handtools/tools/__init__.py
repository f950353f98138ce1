"""The tools, one module and one prompt each; `editing`, `reading` and `search` hold what several of them share."""
