"""A learner's state as bytes and back, exactly: tensors and plain values only, never code.

The bytes are a checksum and a safetensors file: every tensor under a number, and the nesting of dicts and lists around
them as JSON in its header.
"""

import json
from hashlib import sha256
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from skeleton_cgl.errors import InputError

_HEADER = "nesting"
_CHECKSUM_SIZE = 32


def to_bytes(state: dict[str, Any]) -> bytes:
    """Return nested dicts and lists of tensors, numbers, text, booleans and None as bytes; refuse anything else."""
    tensors: dict[str, Tensor] = {}
    nesting = json.dumps(_describe(state, tensors))
    # An empty file is not allowed, so that there is always one tensor.
    content = save({"": torch.zeros(1), **tensors}, metadata={_HEADER: nesting})
    return _checksum(content) + content


def from_bytes(content: bytes) -> dict[str, Any]:
    """Return the state that `to_bytes` gave these bytes for; refuse damaged ones."""
    checksum, content = content[:_CHECKSUM_SIZE], content[_CHECKSUM_SIZE:]
    if _checksum(content) != checksum:
        raise InputError("the saved state of a learner is damaged")
    size = int.from_bytes(content[:8], "little")
    nesting = json.loads(json.loads(content[8 : 8 + size])["__metadata__"][_HEADER])
    return _rebuild(nesting, load(content))


def _checksum(content: bytes) -> bytes:
    return sha256(content).digest()


def _describe(value: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, Tensor):
        name = str(len(tensors))
        tensors[name] = value.detach().contiguous().clone()
        return {"tensor": name}
    if isinstance(value, dict):
        return {"dict": [[_key(key), _describe(entry, tensors)] for key, entry in value.items()]}
    if isinstance(value, list | tuple):
        return {"list": [_describe(entry, tensors) for entry in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise InputError(f"a state holds tensors and plain values, found {type(value).__name__}")


def _key(key: Any) -> str | int:
    if not isinstance(key, str | int):
        raise InputError(f"a state's keys are text or whole numbers, found {type(key).__name__}")
    return key


def _rebuild(nesting: Any, tensors: dict[str, Tensor]) -> Any:
    ((kind, content),) = nesting.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {key: _rebuild(entry, tensors) for key, entry in content}
    if kind == "list":
        return [_rebuild(entry, tensors) for entry in content]
    return content
