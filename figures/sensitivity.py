"""AA against AOPD, a point per method: what is known in the end, and how far the order decides it.

A panel per study and backbone; give several stores, or several studies of one store, to see them side by side.

python figures/sensitivity.py results/ucla.db --out sensitivity.png
python figures/sensitivity.py results/ucla.db results/cora.db --out sensitivity.pdf
"""

from command import main

if __name__ == "__main__":
    main("sensitivity", __doc__)
