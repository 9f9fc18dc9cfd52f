"""What objects hold, as digests that can be compared: to find what changed or differs, attribute by attribute."""

import hashlib
import pickle
import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skeleton_cgl.learning.learner import Learner

Contents = dict[str, str]
"""Names, and the digest of what each holds."""

_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)
_KNOWN = (
    *(*_PLAIN, dict, list, tuple, set, frozenset, deque, Tensor, np.ndarray, nn.Module, Learner, ModuleType),
    *(type, FunctionType, MethodType, BuiltinFunctionType, random.Random),
)
_OF_EVERY_MODULE = frozenset(vars(nn.Module()))


def content_of(value: Any) -> str:
    """Return a digest of what a value holds: the same for values that hold the same, wherever they are in memory."""
    return _digest(value, ())


def attributes_of(owner: object, without: Iterable[str] = ()) -> Contents:
    """Return what every attribute of an object holds; those of helper objects by their way there, `buffer.items`.

    Of a backbone or another module: what its `state_dict` does not have.
    """
    if isinstance(owner, nn.Module):
        return {name: content_of(value) for name, value in _beside_state_dict(owner).items()}
    found: Contents = {}
    _add_attributes(found, "", owner, frozenset(without), ())
    return found


def outside_of(found: type[Any]) -> Contents:
    """Return what the modules of a class hold, and the classes in them, and the defaults of their functions."""
    contents: Contents = {}
    modules = {kind.__module__ for kind in found.__mro__ if kind.__module__.split(".")[0] not in ("builtins", "torch")}
    for module in sorted(modules):
        _add_values(contents, "", vars(sys.modules[module]), module)
    return contents


def _add_values(contents: Contents, path: str, values: Mapping[str, Any], module: str) -> None:
    for name, value in list(values.items()):
        if isinstance(value, FunctionType):
            if value.__defaults__:
                contents[f"a default of `{path}{name}`"] = content_of(value.__defaults__)
        elif isinstance(value, type):
            # Not again into those it is made of.
            if value.__module__ == module and not path:
                _add_values(contents, f"{name}.", vars(value), module)
        elif not name.startswith("__") and not isinstance(value, ModuleType):
            contents[f"`{path}{name}`"] = content_of(value)


def differing(one: Contents, other: Contents) -> list[str]:
    """Return the names that hold different things, or are in one only."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def _add_attributes(
    found: Contents, path: str, owner: object, without: frozenset[str], within: tuple[int, ...]
) -> None:
    for name, value in vars(owner).items():
        if name in without:
            continue
        if _is_helper(value) and id(value) not in within:
            _add_attributes(found, f"{path}{name}.", value, frozenset(), (*within, id(value)))
        else:
            found[path + name] = content_of(value)


def _is_helper(value: object) -> bool:
    """Return whether an object is one of a user's own, kept for its attributes."""
    return bool(getattr(value, "__dict__", None)) and not isinstance(value, _KNOWN) and not _is_pool(value)


def _is_pool(value: object) -> bool:
    """Return whether a value is all samples of a data set, which have a digest of their own."""
    return hasattr(value, "digest") and hasattr(value, "whole")


def _beside_state_dict(module: nn.Module) -> dict[str, Any]:
    """Return what a module and those within it hold besides what `state_dict` has, by name."""
    found: dict[str, Any] = {}
    for path, inner in module.named_modules():
        prefix = f"{path}." if path else ""
        own = {name: value for name, value in vars(inner).items() if name not in _OF_EVERY_MODULE}
        unsaved = {name: inner._buffers[name] for name in inner._non_persistent_buffers_set}
        found.update({prefix + name: value for name, value in {**own, **unsaved}.items()})
    return found


def _held(value: Any) -> dict[str, Any]:
    """Return the attributes of an object; of a frozen value its fields: what else it has, it computed of them."""
    if is_dataclass(value) and getattr(type(value), "__dataclass_params__").frozen:  # noqa: B009
        return {each.name: getattr(value, each.name) for each in fields(value) if each.compare}
    return vars(value)


def _digest(value: Any, within: tuple[int, ...]) -> str:
    """Return the digest of a value inside of those whose ids are `within`."""
    kind = type(value)
    if isinstance(value, _PLAIN):
        return repr(value)
    if id(value) in within or isinstance(value, Learner | ModuleType | type):
        return getattr(value, "__qualname__", kind.__qualname__)
    inside = (*within, id(value))
    if isinstance(value, Tensor):
        dense = (value.detach() if value.layout == torch.strided else value.detach().to_dense()).cpu().contiguous()
        return _hash(str(dense.dtype), tuple(dense.shape), dense.reshape(-1).view(torch.uint8).numpy().tobytes())
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return _hash(str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, dict):
        entries = {repr(key): _digest(entry, inside) for key, entry in value.items()}
        return _hash(kind.__qualname__, sorted(entries.items()))
    if isinstance(value, set | frozenset):
        return _hash(kind.__qualname__, sorted(_digest(entry, inside) for entry in value))
    if isinstance(value, list | tuple | deque | np.ndarray):
        return _hash(kind.__qualname__, [_digest(entry, inside) for entry in value])
    if isinstance(value, nn.Module):
        return _digest([dict(value.state_dict()), _beside_state_dict(value)], inside)
    for known, state_of in _GENERATORS.items():
        if isinstance(value, known):
            return _digest(state_of(value), inside)
    if _is_pool(value):
        return _hash(kind.__qualname__, value.digest)
    if isinstance(value, FunctionType | MethodType | BuiltinFunctionType):
        return value.__qualname__
    if hasattr(value, "__dict__"):
        return _hash(kind.__qualname__, _digest(_held(value), inside))
    try:
        return _hash(pickle.dumps(value))
    except (TypeError, AttributeError, pickle.PicklingError):
        return kind.__qualname__


_GENERATORS: dict[type[Any], Callable[[Any], Any]] = {
    torch.Generator: lambda generator: generator.get_state(),
    np.random.Generator: lambda generator: generator.bit_generator.state,
    np.random.RandomState: lambda generator: generator.get_state(legacy=False),
    random.Random: lambda generator: generator.getstate(),
}


def _hash(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
