"""Reading what `torch.save` writes without trusting it: tensors in plain containers, or arrays of NumPy in them."""

import warnings
import zipfile
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np

from skeleton_cgl.errors import InputError
from skeleton_cgl.reading.unpickle import load_plain
from skeleton_cgl.reading.zips import UNREADABLE, open_member, refusing

_BROKEN = (*UNREADABLE, LookupError, TypeError, AttributeError, AssertionError)
_MAGIC, _BEFORE_CONTENT = 0x1950A86A20F9469CFC6C, 2
"""How a file begins that PyTorch before 1.6 wrote, and how many pickles come between that and the content."""


def load_tensors(path: Path, advice: str = "") -> Any:
    """Return the tensors of a file, in the lists, tuples and dicts they are in.

    Refused: a file that is damaged or unpacks to far more than it is, and anything but tensors in it; `advice` then
    says how to save it otherwise.
    """
    import torch

    _refuse_bombs(path)
    try:
        with warnings.catch_warnings():
            # That a file was written by another protocol is nothing a user need know.
            warnings.simplefilter("ignore", UserWarning)
            return torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        raise InputError(f"{path}: holds more than tensors, which is not read{advice and f'; {advice}'}") from error
    except _BROKEN as error:
        raise InputError(f"{path}: cannot be read: {' '.join(str(error).split()):.200}") from error


def load_arrays(path: Path) -> Any:
    """Return the arrays of NumPy that a file of PyTorch, old or new, holds in place of tensors."""
    with refusing(f"{path}: "):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                names = [name for name in archive.namelist() if name.endswith("data.pkl")]
                if len(names) != 1:
                    raise InputError(f"{path}: expected a file as torch.save writes it")
                with open_member(archive, names[0]) as stream:
                    return load_plain(stream, str(path))
        with path.open("rb") as file:
            if load_plain(file, str(path)) != _MAGIC:
                raise InputError(f"{path}: expected a file as torch.save writes it")
            for _ in range(_BEFORE_CONTENT):
                load_plain(file, str(path))
            return load_plain(file, str(path))


def array_of(where: str, value: Any) -> np.ndarray:
    """Return a tensor as an array; refuse what is none, and one that claims more than the file holds."""
    import torch

    if isinstance(value, np.ndarray):
        return value
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.is_complex():
        raise InputError(f"{where}: expected a dense tensor, found {type(value).__name__}")
    if value.numel() * value.element_size() > value.untyped_storage().nbytes():
        raise InputError(f"{where}: claims {value.numel():,} values, which the file does not hold")
    value = value.detach()
    array: np.ndarray = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    return array


def _refuse_bombs(path: Path) -> None:
    with refusing(f"{path}: expected a file as torch.save writes it; "), zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            try:
                open_member(archive, name).close()
            except InputError as error:
                raise InputError(f"{path}: {error}") from error
