"""AOPD expected of so many orders, exact; where there are noise floors, the same for runs of one order, broken.

python figures/opd_growth.py results/ucla.db --level class --out growth.png
"""

from command import main

if __name__ == "__main__":
    main("opd-growth", __doc__)
