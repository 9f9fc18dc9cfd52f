"""One continual run from Python: five tasks in the default order, the accuracy matrix in the end.

python experiments/one_run.py [data/ucla.h5]
"""

import sys

from skeleton_cgl import Study
from skeleton_cgl.analysis import accuracy_matrix

if __name__ == "__main__":
    data = sys.argv[1] if len(sys.argv) > 1 else "synthetic"
    study = Study(name="one run", scenario={"data": data}, methods="replay", orders={"tasks": "default"})
    scores = study.run("results/one_run.db").scores
    print(accuracy_matrix(scores.test[0], scores.runs[0].order).round(3))
