"""`python -m rollcart`: the same as the command `rollcart`."""

import sys

from rollcart.cli import main

if __name__ == "__main__":
    sys.exit(main(prog="python -m rollcart"))
