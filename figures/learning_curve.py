"""AA after each step, mean and spread over orders.

python figures/learning_curve.py results/ucla.db --out learning.png
"""

from command import main

if __name__ == "__main__":
    main("learning-curve", __doc__)
