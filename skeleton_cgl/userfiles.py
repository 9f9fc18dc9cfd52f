"""Python files of users' own, with all modules of their own that they import: read, told apart by content, loaded.

What a file imports is found by reading it, imports within functions included, so that it is the same in every process
whatever else was imported there. Imports by a name that is computed are not seen.
"""

import ast
import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from skeleton_cgl.errors import InputError

_LIBRARY = Path(__file__).parent
_INSTALLED = {"site-packages", "dist-packages"}
"""Folders of installed packages."""


@dataclass(frozen=True)
class OwnModule:
    """A module of a user's own, as it was when it was read. A folder without `__init__.py` is one without content."""

    name: str
    path: Path
    content: bytes = b""

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py" or self.path.suffix != ".py"

    @property
    def package(self) -> str:
        """What its relative imports begin from."""
        return self.name if self.is_package else self.name.rpartition(".")[0]


@dataclass(frozen=True)
class UserFile:
    """A Python file of a user's own and the modules of their own that it imports, as they were when they were read."""

    path: Path
    content: bytes
    modules: tuple[OwnModule, ...] = ()

    @classmethod
    def read(cls, path: Path, name: str = "") -> "UserFile":
        """Return the file at a path; `name`: that of its module, where it is imported as one."""
        content = path.read_bytes()
        asking = OwnModule(name, path, content)
        return cls(path, content, tuple(sorted(_imported_by(asking), key=lambda module: module.name)))

    @property
    def digest(self) -> str:
        """A digest of the content; of a file that imports no module of their own, of the file alone."""
        digest = hashlib.sha256(self.content)
        for module in self.modules:
            digest.update(f"\0{module.name}\0{len(module.content)}\0".encode() + module.content)
        return digest.hexdigest()

    def module(self) -> ModuleType:
        """Return the module of the file, the same one for as long as the content is the same.

        Refused: a module beside the file whose name another one has that is imported already.
        """
        # Among the known modules, so that dataclasses in it find it; by content, since two files may have one name.
        digest = hashlib.sha256(f"{self.path}{self.digest}".encode()).hexdigest()
        name = f"skeleton_cgl_file_{self.path.stem}_{digest[:8]}"
        if self not in _LOADED:
            _FINDER.offer(self.modules)
            module = sys.modules[name] = ModuleType(name)
            module.__file__ = str(self.path)
            exec(compile(self.content, str(self.path), "exec"), vars(module))
            _LOADED[self] = module
        return _LOADED[self]


_LOADED: dict[UserFile, ModuleType] = {}


def loaded_files() -> tuple[UserFile, ...]:
    """Return the files of users' own that are loaded; another process has to load them to know what they define."""
    return tuple(_LOADED)


def _imported_by(asking: OwnModule) -> set[OwnModule]:
    """Return all modules of a user's own that a module imports, and those that they import."""
    found: dict[str, OwnModule] = {}
    waiting = [asking]
    while waiting:
        module = waiting.pop()
        for name in _imports(module.content, module.package):
            for own in _own_modules(name, asking):
                if own.name not in found and own.path != asking.path:
                    found[own.name] = own
                    waiting.append(own)
    return set(found.values())


@lru_cache(maxsize=1024)
def _imports(content: bytes, package: str) -> tuple[str, ...]:
    """Return the dotted names a module imports; `from a import b` may mean a module b, and gives both a and a.b."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        # Whoever imports it will tell.
        return ()
    names: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(dict.fromkeys(alias.name for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: max(0, package.count(".") + 2 - node.level)] if node.level and package else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names.update(dict.fromkeys([base, *(f"{base}.{alias.name}" for alias in node.names)] if base else []))
    return tuple(names)


def _own_modules(name: str, asking: OwnModule) -> Iterator[OwnModule]:
    """Yield the modules that importing a dotted name loads, its packages first, as far as they are a user's own.

    A name that an installed package has means that package; then one beside the file; then one that Python finds.
    """
    dotted, *rest = name.split(".")
    if dotted != asking.name.partition(".")[0] and _is_library(dotted):
        return
    beside = None if asking.name else _found(dotted, [asking.path.parent])
    path = beside or _found(dotted, sys.path)
    for following in (*rest, None):
        if path is None:
            return
        yield OwnModule(dotted, path, path.read_bytes() if path.suffix == ".py" else b"")
        folder = path.parent if path.name == "__init__.py" else path
        dotted, path = f"{dotted}.{following}", None if following is None else _found(following, [folder])


@cache
def _is_library(name: str) -> bool:
    path = _found(name, sys.path)
    installed = path is not None and not _INSTALLED.isdisjoint(path.parts)
    return installed or name == _LIBRARY.name or name in sys.stdlib_module_names


def _found(name: str, folders: Sequence[str | Path]) -> Path | None:
    """Return the file of a module in one of these folders, or its folder where that is a package without a file."""
    places = [Path(folder).resolve() / name for folder in folders]
    for place in places:
        for path in (place / "__init__.py", place.with_name(f"{name}.py")):
            if path.is_file():
                return path
    return next((place for place in places if place.is_dir()), None)


class _OwnModules(MetaPathFinder):
    """Finds the modules of users' own that loaded files import, with the content they had when they were read."""

    def __init__(self) -> None:
        self._known: dict[str, OwnModule] = {}

    def offer(self, modules: Sequence[OwnModule]) -> None:
        """Let modules be imported; those imported with other content are imported anew."""
        for module in modules:
            other = _other_file(module)
            if other is not None:
                raise InputError(
                    f"imports {module.name!r} from {module.path}, and another module of that name is in use, {other}; "
                    "give one of them another name"
                )
        # What is imported from elsewhere was read as the file is now, as far as can be known.
        changed = [each for each in modules if self._known.get(each.name, each) != each]
        for module in modules if changed else ():
            sys.modules.pop(module.name, None)
        self._known.update({module.name: module for module in modules})

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        own = self._known.get(fullname)
        if own is None:
            return None
        loader = _FromContent(own) if own.path.suffix == ".py" else None
        spec = ModuleSpec(fullname, loader, origin=str(own.path) if loader else None, is_package=own.is_package)
        spec.has_location = loader is not None
        if own.is_package:
            spec.submodule_search_locations = [str(own.path.parent if loader else own.path)]
        return spec


@dataclass(frozen=True)
class _FromContent(Loader):
    """Runs a module as it was read."""

    own: OwnModule

    def create_module(self, spec: ModuleSpec) -> None:  # noqa: ARG002
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.own.content, str(self.own.path), "exec"), vars(module))


def _other_file(module: OwnModule) -> str | None:
    """Return the file of a module of the same name that is imported from elsewhere."""
    there = getattr(sys.modules.get(module.name), "__file__", None)
    return there if there is not None and Path(there).resolve() != module.path else None


_FINDER = _OwnModules()
sys.meta_path.insert(0, _FINDER)
