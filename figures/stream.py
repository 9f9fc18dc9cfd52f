"""A stream and what was known along it: its tasks mixed over time, and below the accuracy of every method.

python figures/stream.py results/stream.db --out stream.png
python figures/stream.py results/stream.db --order "0,1 > 2,3 > 4,5" --out stream.pdf
"""

from command import main

if __name__ == "__main__":
    main("stream", __doc__)
