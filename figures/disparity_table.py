"""Order sensitivity of every method, the published values beside ours (Table 2): text, LaTeX or a picture.

The suffix of the file decides: .txt, .tex, .csv, .json, .png, .pdf or .svg.

python figures/disparity_table.py results/ucla.db --published ucla --out table.tex
"""

from command import main

if __name__ == "__main__":
    main("disparity-table", __doc__)
