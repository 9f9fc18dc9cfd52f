"""AOPD expected of so many orders, exact; where one order was run with several seeds, the same for the seeds, dashed.

python figures/opd_growth.py results/ucla.db --level class --out growth.png
"""

from command import main

if __name__ == "__main__":
    main("opd-growth", __doc__)
