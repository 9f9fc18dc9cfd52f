"""Final accuracy of every class by its position in the order: which classes suffer, and when.

python figures/class_fate.py results/ucla.db --out fate.png
"""

from command import main

if __name__ == "__main__":
    main("class-fate", __doc__)
