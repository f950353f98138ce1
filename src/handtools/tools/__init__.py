"""The tools offered to models, one module and prompt each; shared code is in subpackages."""
