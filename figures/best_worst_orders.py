"""The kindest and the cruellest orders by final AA, with the final accuracy of each of their tasks.

python figures/best_worst_orders.py results/ucla.db --method replay --out orders.png
"""

from command import main

if __name__ == "__main__":
    main("best-worst-orders", __doc__, count=10)
