"""Records tell what computed them, from which source, and what was answered."""

import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from skeleton_cgl.engine import fingerprint as module
from skeleton_cgl.engine.fingerprint import fingerprint, source_digest
from skeleton_cgl.engine.record import Made, Record, same_content
from skeleton_cgl.engine.store import Store
from skeleton_cgl.parts import TEST, VALIDATION
from skeleton_cgl.scenarios.measures import accuracy_measure, answers_of
from tests.engine.studies import small_study

CPU = torch.device("cpu")


def test_a_fingerprint_names_processor_instructions_threads_and_libraries() -> None:
    found = dict(fingerprint(CPU))
    assert found["torch"] == torch.__version__
    assert found["numpy"] == np.__version__
    assert found["Python"] == platform.python_version()
    assert found["instructions"].split()[0] == torch.backends.cpu.get_cpu_capability()
    assert found["processor"]


def test_another_number_of_threads_is_another_fingerprint() -> None:
    before = torch.get_num_threads()
    first = fingerprint(CPU)
    try:
        torch.set_num_threads(before + 1)
        assert dict(fingerprint(CPU))["threads"] == str(before + 1)
    finally:
        torch.set_num_threads(before)
    assert fingerprint(CPU) == first


def test_a_fingerprint_does_not_depend_on_what_was_imported_before() -> None:
    command = (
        "import torch; from skeleton_cgl.engine.fingerprint import fingerprint; print(fingerprint(torch.device('cpu')))"
    )
    printed = [
        subprocess.run([sys.executable, "-c", before + command], capture_output=True, check=True, text=True).stdout
        for before in ("", "import scipy.linalg, scipy.optimize, sklearn.metrics; ")
    ]
    assert printed[0] == printed[1]


def test_a_library_held_to_fewer_instructions_is_another_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    module._fingerprint.cache_clear()
    assert dict(fingerprint(CPU))["MKL_CBWR"] == "COMPATIBLE"
    module._fingerprint.cache_clear()


def test_the_digest_of_the_source_changes_with_a_module(tmp_path: Path) -> None:
    digests = set()
    for number, (name, content) in enumerate((("a.py", "x = 1"), ("a.py", "x = 2"), ("b.py", "x = 2"))):
        library = tmp_path / str(number)
        library.mkdir()
        (library / name).write_text(content)
        digests.add(source_digest(library))
    assert len(digests) == 3


def test_records_keep_every_answer_their_fingerprint_and_their_source(tmp_path: Path) -> None:
    study = small_study(tmp_path, methods=["bare"], orders={"given": [[[0, 1], [2, 3]]]})
    study.run(tmp_path / "x.db", progress=False)
    scenario = study.make_scenario(0)
    parts, labels = scenario._parts[scenario._queries], scenario._labels[scenario._queries]
    truth = torch.cat([labels[parts == part] for part in (TEST, VALIDATION)])
    with Store(tmp_path / "x.db") as store:
        records = list(store.records())
    assert len(records) == 2
    for record in records:
        assert record.made.fingerprint == fingerprint(CPU)
        assert dict(record.made.versions)["source"] == source_digest()
        assert record.answers is not None
        assert record.answers.dtype == np.uint8
        asked = record.measure("test", "accuracy").asked.sum()
        for part, own in (("test", slice(None, asked)), ("validation", slice(asked, None))):
            counts = np.zeros((10, 10), dtype=int)
            np.add.at(counts, (truth[own].numpy(), record.answers[own]), 1)
            assert (record.measure(part, "accuracy").counts == counts).all()


def test_answers_are_whole_numbers_of_the_narrowest_type() -> None:
    def scored(part: str, *answered: int) -> object:
        measure = accuracy_measure(part, np.eye(2, dtype=int))
        return type(measure)(**{**vars(measure), "answered": np.array(answered)})

    both = answers_of([scored("test", 0, 300), scored("validation", 1)])
    assert both is not None
    assert both.tolist() == [0, 300, 1]
    assert both.dtype == np.uint16
    assert answers_of([accuracy_measure("test", np.eye(2, dtype=int))]) is None


def test_records_of_other_answers_are_not_the_same() -> None:
    scores = (accuracy_measure("test", np.eye(2, dtype=int)),)
    made = Made(1, "", (), 0)
    first, other, old = (
        Record("k", scores, made, None if answers is None else np.array(answers)) for answers in ([0, 1], [1, 0], None)
    )
    assert same_content(first, first)
    assert not same_content(first, other)
    assert same_content(first, old)
