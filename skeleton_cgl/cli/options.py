"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

StoreFile = Annotated[Path, typer.Argument(help="The store, as `run` made it.", show_default=False)]
WhichStudy = Annotated[
    str | None, typer.Option("--study", help="Name or number of a study.", show_default="the latest")
]


StudyFile = Annotated[Path, typer.Argument(help="A study file; see experiments/.", show_default=False)]
NewStore = Annotated[
    Path | None, typer.Option("--store", help="Where records are kept.", show_default="results/NAME.db")
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a field: training.epochs=20. May be given again.", show_default=False),
]
Workers = Annotated[int, typer.Option(help="Processes of one thread each.", min=1, max=1024)]
Cluster = Annotated[str | None, typer.Option(help="Address of a running Dask scheduler, instead.", show_default=False)]
Published = Annotated[
    Literal[
        "ucla",
        "ntu",
        "cora-task",
        "cora-class",
        "citeseer-task",
        "citeseer-class",
        "pcg-task",
        "pcg-class",
        "bitcoin-task",
        "bitcoin-class",
        "bitcoin-time",
        "aromaticity-task",
        "aromaticity-class",
        "molhiv",
        "tox21",
        "sider",
        "cglb-aromaticity-task",
        "cglb-aromaticity-class",
    ]
    | None,
    typer.Option(help="Put the published values of this data set beside.", show_default=False),
]
Anyway = Annotated[
    bool, typer.Option("--anyway", help="Also where our study is unlike the published one; differences are marked.")
]
Retry = Annotated[bool, typer.Option("--retry", help="Run again what failed before.")]
Mix = Annotated[bool, typer.Option("--mix", help="Go on with a repeat that was begun on another kind of machine.")]
Traceback = Annotated[bool, typer.Option("--traceback", help="Show the whole way to every error.")]
