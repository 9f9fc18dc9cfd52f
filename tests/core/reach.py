"""Everything that can be reached from an object: through attributes, containers, closures, iterators, graphs."""

import gc
import inspect
from collections.abc import Iterable, Iterator
from types import ModuleType

import dgl
import numpy as np
import torch
from torch import Tensor


def reached(*roots: object) -> Iterator[np.ndarray]:
    """Yield all arrays within reach, those that others are parts of and rows of numbers in tuples and lists among them.

    Modules are not entered, nor the classes of libraries.
    """
    for found in objects_reached(*roots):
        if isinstance(found, Tensor):
            yield found.detach().cpu().numpy()
            yield _memory_of(found)
        if isinstance(found, np.ndarray):
            yield found
        if isinstance(found, list | tuple) and found and all(isinstance(each, int | float) for each in found):
            yield np.array(found)


def objects_reached(*roots: object) -> Iterator[object]:
    """Yield all objects within reach, each once."""
    waiting: list[object] = list(roots)
    seen: dict[int, object] = {}
    while waiting:
        found = waiting.pop()
        if id(found) in seen or isinstance(found, ModuleType) or (isinstance(found, type) and not _is_ours(found)):
            continue
        seen[id(found)] = found
        yield found
        if isinstance(found, np.ndarray):
            waiting.append(found.base)
        waiting += _held_by(found)


def _memory_of(tensor: Tensor) -> np.ndarray:
    """Return all numbers in the memory that a tensor is in, of which it may be a part."""
    whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.detach().untyped_storage())
    return whole.cpu().numpy()


def _is_ours(kind: type) -> bool:
    return kind.__module__.split(".")[0].startswith(("skeleton_cgl", "tests"))


def _held_by(found: object) -> Iterable[object]:
    if isinstance(found, dgl.DGLGraph):
        return [*found.edges(), *found.ndata.values(), *found.edata.values()]
    if inspect.isfunction(found):
        # Not all that it refers to: that would be its module.
        return [found.__closure__, found.__defaults__, found.__kwdefaults__, vars(found)]
    return gc.get_referents(found)
