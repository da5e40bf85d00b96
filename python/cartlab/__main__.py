"""`python -m cartlab`: the command `cartlab` where its script is not on the path."""

import sys

from cartlab.cli import main

if __name__ == "__main__":
    sys.exit(main())
