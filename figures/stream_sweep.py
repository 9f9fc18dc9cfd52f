"""What is known along a stream, and forgotten, against how far its tasks overlap: A_AUC and AF_s against O.

The study sweeps how tasks run into one another, such as `scenario.transition.sigma`.

python figures/stream_sweep.py results/streams.db --out sweep.png
"""

from command import main

if __name__ == "__main__":
    main("stream-sweep", __doc__)
