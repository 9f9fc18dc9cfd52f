"""AA against AF, one point per order (its mean over repeats), with the bound of Theorem 1 (Figs. 3 to 6).

A panel per study and backbone; give several stores, or several studies of one store, to see them side by side.

python figures/order_scatter.py results/ucla.db --out scatter.png
python figures/order_scatter.py results/ucla.db results/ntu.db --kind task --out scatter.pdf
"""

from command import main

if __name__ == "__main__":
    main("order-scatter", __doc__)
