"""Finding classes by name, by module:Class and by file; everything else is refused with what was expected."""

from pathlib import Path

import pytest

from skeleton_cgl.errors import InputError
from skeleton_cgl.learning.method import Method
from skeleton_cgl.methods.ewc import EWC
from skeleton_cgl.registry import METHODS, Registry


class Own(Method):
    def __init__(self, needed: int, offered: str, more: float = 2) -> None:
        self.values = needed, offered, more


NOT_A_CLASS = 3


def test_a_known_name_is_found_without_importing_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "own_methods"
    package.mkdir()
    (package / "__init__.py").write_text("SHARED = ('tools',)\n")
    (package / "calm_one.py").write_text(
        "from skeleton_cgl.learning.method import Method\nclass Calm(Method):\n    pass\n"
    )
    (package / "lost.py").write_text("raise ImportError('lost')\n")
    (package / "tools.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry("method", METHODS.base, "own_methods")
    assert registry.names() == ["calm-one", "lost"]
    assert registry.find("calm-one").__name__ == "Calm"
    assert METHODS.find("ewc") is EWC


@pytest.mark.parametrize("name", METHODS.names())
def test_every_known_method_is_a_method(name: str) -> None:
    assert issubclass(METHODS.find(name), Method)


def test_a_class_is_found_by_module_and_by_file(tmp_path: Path) -> None:
    assert METHODS.find(f"{__name__}:Own") is Own
    file = tmp_path / "mine.py"
    file.write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "from skeleton_cgl.methods.bare import Bare\n"
        "from skeleton_cgl.learning.method import Method\n"
        "@dataclass\n"
        "class Note:\n"
        "    text: str\n"
        "class Mine(Bare):\n"
        "    def __init__(self, weight=1):\n"
        "        self.weight = weight\n"
    )
    found = METHODS.make(str(file), {"weight": 5})
    assert type(found).__name__ == "Mine"
    assert found.weight == 5


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("replai", "unknown method 'replai'; did you mean 'replay'"),
        ("xyz", "unknown method 'xyz'; known: a-gem, bare"),
        ("", "unknown method ''; known: a-gem, bare"),
        ("no.such.module:X", "'no.such.module:X': No module named 'no'"),
        (f"{__name__}:Absent", "has no attribute 'Absent'"),
        (f"{__name__}:", f"'{__name__}:'"),
        (":Own", "':Own'"),
        (".relative:Own", "'.relative:Own'"),
        (f"{__name__}:NOT_A_CLASS", "expected a class derived from Method"),
        ("skeleton_cgl.backbones.clips.gcn:GCN", "expected a class derived from Method"),
        ("absent.py", r"absent\.py: no such file"),
    ],
)
def test_names_that_lead_nowhere_are_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        METHODS.find(name)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("import no_such_module", "cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"),
        ("class Broken(", "cannot be imported: SyntaxError:"),
        ("undefined + 1", "cannot be imported: NameError: name 'undefined' is not defined"),
        ("x = 1", "expected one class derived from Method, found none"),
        ("from skeleton_cgl.methods.bare import Bare", "expected one class derived from Method, found none"),
        (
            "from skeleton_cgl.learning.method import Method\nclass A(Method): pass\nclass B(Method): pass",
            "expected one class derived from Method, found A, B",
        ),
    ],
)
def test_files_without_the_one_class_are_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(content)
    with pytest.raises(InputError, match=rf"method .*mine\.py: {message}"):
        METHODS.find(str(tmp_path / "mine.py"))


def test_two_files_of_one_name_are_two_classes(tmp_path: Path) -> None:
    found = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / "mine.py"
        file.write_text(
            f"from skeleton_cgl.learning.method import Method\nclass Mine(Method):\n    here = '{folder}'\n"
        )
        found.append(METHODS.find(str(file)))
    assert [one.here for one in found] == ["one", "two"]


def test_a_constructor_gets_what_it_asks_for_by_name() -> None:
    name = f"{__name__}:Own"
    made = METHODS.make(name, {"needed": 1}, {"offered": "by the scenario", "not asked for": 0})
    assert made.values == (1, "by the scenario", 2)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "parameter 'needed' is missing"),
        ({"needed": 1, "mor": 2}, "unknown parameter 'mor'; did you mean 'more'"),
        ({"needed": 1, "offered": "by the user"}, "unknown parameter 'offered'; known: more, needed"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        METHODS.make(f"{__name__}:Own", parameters, {"offered": ""})


def test_what_a_constructor_refuses_is_said_with_the_name() -> None:
    with pytest.raises(InputError, match="method 'gem': margin -1 is negative"):
        METHODS.make("gem", {"margin": -1})


CONSTRUCTOR = (
    "from skeleton_cgl.learning.method import Method\n"
    "class Mine(Method):\n"
    "    def __init__(self, weight=1):\n"
    "        if weight < 0:\n"
    "            raise ValueError(f'weight {weight} is negative')\n"
    "        self.root = {}[weight]\n"
)


def test_a_constructor_refuses_in_its_own_words_and_its_errors_are_told_with_their_place(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(CONSTRUCTOR)
    for parameters, message in (
        ({"weight": -1}, "weight -1 is negative"),
        ({"weight": 1}, f"KeyError: 1 ({file}, line 6, in `__init__` of Mine)"),
        ({"weight": "a"}, f"({file}, line 4, in `__init__` of Mine)"),
    ):
        with pytest.raises(InputError) as refused:
            METHODS.make(str(file), parameters)
        assert str(refused.value).startswith(f"method '{file}': ")
        assert str(refused.value).count("method ") == 1
        assert str(refused.value).endswith(message)
