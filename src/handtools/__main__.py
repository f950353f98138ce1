"""`python -m handtools`: the command line."""

from handtools.cli.entry import main

if __name__ == "__main__":
    main()
