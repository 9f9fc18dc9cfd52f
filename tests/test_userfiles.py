"""A file of a user's own counts, and travels, with all modules of their own that it imports."""

import hashlib
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skeleton_cgl import userfiles
from skeleton_cgl.engine.workers import _Sent
from skeleton_cgl.errors import InputError
from skeleton_cgl.registry import METHODS
from skeleton_cgl.userfiles import UserFile

METHOD = """
import json
import numpy as np
from skeleton_cgl.learning.method import Method
{imports}
class Mine(Method):
    def says(self):
        {lazily}
        return VALUE
"""


@pytest.fixture(autouse=True)
def _as_if_nothing_was_loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(userfiles, "_LOADED", {})
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write_method(folder: Path, imports: str, lazily: str = "pass") -> str:
    path = folder / "mine.py"
    path.write_text(METHOD.format(imports=imports, lazily=lazily))
    return str(path)


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def test_a_file_that_imports_nothing_of_its_own_counts_alone(tmp_path: Path) -> None:
    name = write_method(tmp_path, "VALUE = 1")
    write(tmp_path / "other.py", "VALUE = 2")
    write(tmp_path / "json.py", "VALUE = 3")
    write(tmp_path / "numpy.py", "VALUE = 4")
    assert METHODS.code_of(name) == hashlib.sha256(Path(name).read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("imports", "lazily", "module"),
    [
        ("from one_part import VALUE", "pass", "one_part.py"),
        ("import one_part as part; VALUE = part.VALUE", "pass", "one_part.py"),
        ("", "from one_part import VALUE", "one_part.py"),
        ("from a_package.inner import VALUE", "pass", "a_package/inner.py"),
        ("from a_package import inner; VALUE = inner.VALUE", "pass", "a_package/inner.py"),
        ("from a_folder.inner import VALUE", "pass", "a_folder/inner.py"),
        ("from a_package.outer import VALUE", "pass", "a_package/inner.py"),
        ("from far_part import VALUE", "pass", "one_part.py"),
    ],
)
def test_an_edited_module_gives_another_digest_and_is_imported_anew(
    tmp_path: Path, imports: str, lazily: str, module: str
) -> None:
    for file in ("one_part.py", "a_package/inner.py", "a_folder/inner.py"):
        write(tmp_path / file, "VALUE = 1")
    write(tmp_path / "a_package/__init__.py", "")
    write(tmp_path / "a_package/outer.py", "from .inner import VALUE")
    write(tmp_path / "far_part.py", "from one_part import VALUE")
    name = write_method(tmp_path, imports, lazily)
    before, first = METHODS.code_of(name), METHODS.make(name, {})
    assert (METHODS.code_of(name), METHODS.find(name)) == (before, type(first))
    assert first.says() == 1
    write(tmp_path / module, "VALUE = 2")
    assert METHODS.code_of(name) != before
    assert METHODS.make(name, {}).says() == 2


def test_a_module_of_a_package_counts_with_the_modules_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages" / "installed_package"
    write(package / "__init__.py", "")
    write(package / "parts" / "__init__.py", "VALUE = 1")
    write(package / "mine.py", METHOD.format(imports="from .parts import VALUE", lazily="pass"))
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    before = METHODS.code_of("installed_package.mine:Mine")
    write(package / "parts" / "__init__.py", "VALUE = 2")
    assert METHODS.code_of("installed_package.mine:Mine") != before


def test_two_modules_of_one_name_are_refused(tmp_path: Path) -> None:
    names = []
    for folder in ("one", "two"):
        write(tmp_path / folder / "the_part.py", f"VALUE = {folder!r}")
        names.append(write_method(tmp_path / folder, "from the_part import VALUE"))
    assert METHODS.make(names[0], {}).says() == "one"
    with pytest.raises(
        InputError, match=r"method .*two.mine\.py: imports 'the_part' from .*another module of that name"
    ):
        METHODS.find(names[1])


def test_what_is_wrong_in_a_module_is_told_of_the_file_that_imports_it(tmp_path: Path) -> None:
    write(tmp_path / "broken_part.py", "VALUE = (")
    with pytest.raises(InputError, match=r"mine\.py: cannot be imported: SyntaxError: .*broken_part\.py"):
        METHODS.find(write_method(tmp_path, "from broken_part import VALUE"))


def test_another_process_gets_a_file_with_its_modules_without_the_files(tmp_path: Path) -> None:
    write(tmp_path / "sent_part.py", "class Part:\n    value = 1\n")
    write(tmp_path / "mine.py", "from sent_part import Part\nclass Whole:\n    part = Part()\n")
    scenario = UserFile.read(tmp_path / "mine.py").module().Whole()
    scenario.other = sys.modules["sent_part"].Part()
    content = pickle.dumps(_Sent(scenario))
    for file in tmp_path.glob("*.py"):
        file.unlink()
    command = (
        "import pickle, sys; sent = pickle.load(sys.stdin.buffer).scenario; print(sent.part.value + sent.other.value)"
    )
    printed = subprocess.run([sys.executable, "-c", command], input=content, capture_output=True, check=True)
    assert printed.stdout.split() == [b"2"]
