"""Order sensitivity of every method, the published values beside ours (Table 2): text, LaTeX or a picture.

The suffix of the file decides: .txt, .tex, .csv, .json, .png, .pdf or .svg.

python figures/disparity_table.py results/ucla.db --published ucla --out table.tex
"""

import argparse

from command import make_parser, open_results, run

from skeleton_cgl.analysis.plots import disparity_picture, save
from skeleton_cgl.analysis.published import DATASETS
from skeleton_cgl.analysis.tables import disparity_table
from skeleton_cgl.files import write_beside

TEXTS = {".txt": "text", ".tex": "latex", ".csv": "csv", ".json": "json"}


def draw(options: argparse.Namespace) -> None:
    disparity = open_results(options.store, options.study).disparity(options.level)
    if options.out.suffix in TEXTS:
        text = disparity_table(disparity, TEXTS[options.out.suffix], options.published)
        with write_beside(options.out) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
    else:
        save(disparity_picture(disparity, options.published), options.out)


if __name__ == "__main__":
    parser = make_parser(__doc__, level=True)
    parser.add_argument("--published", choices=DATASETS, help="put the published values of this data set beside")
    run(draw, parser)
