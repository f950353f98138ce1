"""`python -m handtools`: the command line."""

import os
import sys

if __name__ == "__main__":
    # `python -m` puts the current folder first on sys.path. It is often a workspace: don't import from it.
    if not sys.flags.safe_path and sys.path and os.path.realpath(sys.path[0]) == os.getcwd():
        del sys.path[0]
    from handtools.cli.entry import main

    main()
