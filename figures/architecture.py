"""AA and AF against what a study sweeps, such as width or depth, mean and spread over repeats (Figs. 7, 8).

python figures/architecture.py results/ucla.db --study ucla_width --out width.png
"""

from command import main

if __name__ == "__main__":
    main("architecture", __doc__)
