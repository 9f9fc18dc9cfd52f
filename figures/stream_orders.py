"""How far the order decides what is known in the end, against how far the tasks of a stream overlap: AOPD against O.

The study has several orders, and sweeps how tasks run into one another, such as `scenario.transition.sigma`.

python figures/stream_orders.py results/streams.db --out orders.png
"""

from command import main

if __name__ == "__main__":
    main("stream-orders", __doc__)
