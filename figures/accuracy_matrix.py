"""The performance matrix of every method: accuracy on each task of an order after each step, for one order or averaged.

python figures/accuracy_matrix.py results/ucla.db --out matrix.png
python figures/accuracy_matrix.py results/ucla.db --order "0,1 > 2,3 > 4,5 > 6,7 > 8,9" --out matrix.png
"""

from command import main

if __name__ == "__main__":
    main("accuracy-matrix", __doc__)
