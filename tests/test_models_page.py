"""What models/README.md says of checking, of methods and of packages is true: its code runs, its output is real."""

import configparser
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import torch

from skeleton_cgl.engine.checking import check_subject, checks_of, find_subject
from skeleton_cgl.engine.checking.of_learners import keeps_nothing_outside, repeats_itself
from skeleton_cgl.engine.learners import BACKBONE_NEEDS
from skeleton_cgl.learning.learner import Learner
from skeleton_cgl.learning.method import MOMENTS, Method
from skeleton_cgl.registry import LISTED
from skeleton_cgl.scenarios.scenario import Need, Samples
from tests.conftest import Run

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "models" / "README.md").read_text(encoding="utf-8")
MY_NET, *_, RESERVOIR = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
SLOW = (repeats_itself, keeps_nothing_outside)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, with the files of the page in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "my_net.py").write_text(MY_NET, encoding="utf-8")
    (tmp_path / "reservoir.py").write_text(RESERVOIR, encoding="utf-8")
    return tmp_path


def rows_below(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a line of the page."""
    lines = PAGE[PAGE.index(heading) :].splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("|"))
    table = [line for line in lines[start + 2 :][: lines[start + 2 :].index("")] if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in table]


def output_below(heading: str) -> list[str]:
    block = re.search(r"```\n(.*?)```", PAGE[PAGE.index(heading) :], flags=re.DOTALL)
    assert block is not None
    return block.group(1).splitlines()


def without_numbers(lines: list[str]) -> list[str]:
    """Return lines without the shares and epochs of learning, which differ from machine to machine."""
    return [re.sub(r"learns: .*", "learns", line) for line in lines]


@pytest.mark.usefixtures("folder")
def test_the_output_of_check_is_that_of_the_page(run: Run) -> None:
    command, *expected = output_below("## Check a method")
    assert command == "$ skeleton-cgl check reservoir.py"
    code, printed, _ = run("check", "reservoir.py")
    assert code == 0
    assert without_numbers(printed.splitlines()) == without_numbers(expected)


@pytest.mark.usefixtures("folder")
def test_the_backbone_of_the_page_keeps_the_promises_that_the_page_shows() -> None:
    subject = find_subject("models/my_net.py")
    checks = checks_of(subject)
    found = {finding.promise: str(finding) for finding in check_subject(subject, [c for c in checks if c not in SLOW])}
    lines = [found.get(check.promise, f"ok         {check.promise}") for check in checks]
    assert without_numbers(output_below("## Check\n")) == without_numbers(["backbone MyNet (models/my_net.py)", *lines])


STATE, RESTORE = RESERVOIR.index("    def state"), RESERVOIR.index("    def restore")
MISTAKES = {
    "no `state` and `restore`": (RESERVOIR[:STATE], {}),
    "no `restore`": (RESERVOIR[:RESTORE], {}),
    "`state` gives `self.memory[0].numpy()`": (
        RESERVOIR.replace('"memory": self.memory}', '"memory": self.memory[0].numpy()}'),
        {},
    ),
    "`learner.seed_of_leson`": (RESERVOIR.replace("seed_of_lesson", "seed_of_leson"), {}),
    "`def end_task(`": (RESERVOIR.replace("def end_lesson(", "def end_task("), {}),
    "`--set size=0`": (RESERVOIR, {"size": 0}),
}


def test_all_mistakes_of_the_page_are_tried() -> None:
    assert [row[0] for row in rows_below("## Check a method")] == list(MISTAKES)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_a_method_are_told_in_the_words_of_the_page(folder: Path, mistake: str) -> None:
    code, parameters = MISTAKES[mistake]
    (folder / "reservoir.py").write_text(code, encoding="utf-8")
    subject = find_subject("reservoir.py", parameters)
    findings = check_subject(subject, [check for check in checks_of(subject) if check not in SLOW])
    (failed,) = [str(finding).removeprefix("FAILED     ") for finding in findings if str(finding).startswith("FAILED")]
    told = next(row[1] for row in rows_below("## Check a method") if row[0] == mistake)
    quoted = re.fullmatch(r"(`+) ?(.*?) ?\1", told)
    assert quoted is not None
    assert failed == quoted[2]


def test_the_moments_are_those_of_a_method() -> None:
    signatures = [row[0].strip("`") for row in rows_below("Override the moments you need")]
    assert [signature.split("(")[0] for signature in signatures] == list(MOMENTS)
    for signature in signatures:
        name, _, arguments = signature.removesuffix(")").partition("(")
        assert ["self", *filter(None, arguments.split(", "))] == list(
            inspect.signature(getattr(Method, name)).parameters
        )


def test_what_the_learner_is_said_to_offer_is_there() -> None:
    offered = "".join(row[0] for row in rows_below("What the learner offers"))
    written = inspect.getsource(Learner)
    for name in re.findall(r"`(?:with )?(\w+)", offered):
        assert hasattr(Learner, name) or f"self.{name}" in written, name


def test_all_needs_are_on_the_page_and_so_are_the_methods_by_which_backbones_meet_some() -> None:
    rows = rows_below("says what it cannot do without")
    named = [name for row in rows for name in re.findall(r'"([\w ]+)"', row[0])]
    assert sorted(named) == sorted(get_args(Need))
    met = {name for row in rows for name in re.findall(r"`(\w+\(\w*\))`", row[1])}
    assert met == set(BACKBONE_NEEDS.values())
    described = {row[0].strip("`") for row in rows_below("more let a backbone be used by one method each")}
    assert described == met - {"edge_attention(inputs)"}


def test_built_in_methods_are_no_longer_than_the_page_says() -> None:
    said = re.search(r"`skeleton_cgl/methods/` have at most (\d+) lines each", PAGE)
    assert said is not None
    for file in (ROOT / "skeleton_cgl" / "methods").glob("*.py"):
        assert len(file.read_text(encoding="utf-8").splitlines()) <= int(said[1]), file.name


def test_the_method_of_the_page_runs_in_a_study_as_the_page_says(folder: Path, run: Run) -> None:
    command = re.search(
        r"`skeleton-cgl (run experiments/quickstart.yaml) --set '(methods=[^']*)' --store mine.db`", PAGE
    )
    assert command is not None
    shutil.copytree(ROOT / "experiments", folder / "experiments")
    few = ["--set", "orders.tasks=2", "--set", "training.epochs=1"]
    code, printed, errors = run(*command[1].split(), "--set", command[2], *few, "--store", "mine.db")
    assert code == 0, errors
    assert "4 of 4 runs" in printed
    code, printed, _ = run("table", "mine.db")
    assert code == 0
    assert "eservoir" in printed


def test_the_reservoir_is_filled_evenly() -> None:
    """Every sample met is kept equally often, whichever lesson it came in."""
    names: dict[str, object] = {}
    exec(compile(RESERVOIR, "reservoir.py", "exec"), names)

    class Told:
        def __init__(self, seed: int) -> None:
            self.seed = seed

        def seed_of_lesson(self, *_: object) -> int:
            return self.seed

    class Lesson:
        def __init__(self, first: int, last: int) -> None:
            ids = torch.arange(first, last)
            self.training = Samples(None, ids, ids, ids)

    kept = torch.zeros(60)
    for seed in range(0, 1500, 2):
        method = names["Reservoir"](size=10)
        for step, lesson in enumerate((Lesson(0, 20), Lesson(20, 50), Lesson(50, 60))):
            method.end_lesson(Told(3 * seed + step), lesson)
        kept[method.memory[0]] += 1
    expected = 750 * 10 / 60
    assert ((kept - expected) ** 2 / expected).sum() < 110, "χ² with 59 degrees of freedom: 110 in one of 10⁴"


def test_a_package_adds_components_by_the_entry_points_of_the_page(folder: Path) -> None:
    """An installed package is a folder beside a description; `ls` finds what the page's setup.cfg says."""
    described = configparser.ConfigParser()
    block = re.search(r"```ini\n(.*?)```", PAGE, flags=re.DOTALL)
    assert block is not None
    described.read_string(block[1])
    groups = described["options.entry_points"]
    assert set(groups) == {registry.group for registry in LISTED.values()}
    package = folder / "my_package"
    package.mkdir()
    (folder / "reservoir.py").rename(package / "reservoir.py")
    (folder / "models" / "my_net.py").rename(package / "my_net.py")
    installed = folder / "my_package-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    wanted = ("skeleton_cgl.methods", "skeleton_cgl.backbones")
    text = "\n".join(f"[{group}]\n{groups[group].strip()}\n" for group in wanted)
    (installed / "entry_points.txt").write_text(text)
    listing = "import sys; from skeleton_cgl.cli import main; sys.argv[1:] = ['ls', sys.argv[1]]; main()"
    for kind, name in (("methods", "reservoir"), ("backbones", "my-net")):
        shown = subprocess.run(
            [sys.executable, "-c", listing, kind],
            env={"PYTHONPATH": f"{ROOT}:{folder}", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert any(line.split()[0] == name for line in shown.splitlines())
