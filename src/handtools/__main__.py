"""`python -m handtools`: the command line."""

import os
import sys

if __name__ == "__main__":
    # Python puts the folder that it was started in first: a workspace, and modules are loaded later, too.
    if not sys.flags.safe_path and sys.path and os.path.realpath(sys.path[0]) == os.getcwd():
        del sys.path[0]
    from handtools.cli.entry import main

    main()
