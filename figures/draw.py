"""Any figure: one of the built-in ones, one that an installed package adds, or one in a file of your own.

python figures/draw.py mine.py results/ucla.db --out mine.png
"""

import sys

from command import main

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit("draw.py: which figure? draw.py NAME_OR_FILE STORE; `skeleton-cgl ls figures` lists names")
    main(sys.argv[1], None, sys.argv[2:])
