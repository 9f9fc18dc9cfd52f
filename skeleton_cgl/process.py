"""Settings of a process that trains: threads, memory, device, an instruction set that works, random generators."""

import ctypes
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from skeleton_cgl.errors import InputError

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_MMAP_MAX = -1, -2, -3, -4
_MOST_MAPPED, _LARGE = 1 << 16, 1 << 27
_SAFE_BFLOAT16 = "AVX512_CORE_BF16"
_SETTLED = threading.local()
_PROBE = """
import torch
clips = torch.randn(2, 4, 9, 5, requires_grad=True)
layers = torch.nn.Conv2d(4, 8, (3, 1)), torch.nn.Linear(8, 3)
with torch.autocast("cpu", dtype=torch.bfloat16):
    layers[1](layers[0](clips).mean(dim=(2, 3))).sum().backward()
"""


def settle(threads: int = 1) -> None:
    """Make this process and the calling thread ready to train: `threads` threads, and freed memory kept.

    OpenMP counts threads anew for every thread that calls it, so that each that trains has to be settled.
    """
    _keep_freed_memory()
    if getattr(_SETTLED, "threads", None) != threads:
        torch.set_num_threads(threads)
        threadpool_limits(threads)
        _SETTLED.threads = threads


@cache
def _keep_freed_memory() -> None:
    """Keep freed memory for the next step.

    By default glibc hands large blocks back to the kernel as soon as a tensor dies, and the next step faults every page
    in again, which can take half of its time. No number changes; the process keeps its peak size until it ends.
    """
    _set_allocation({_M_MMAP_MAX: 0, _M_TRIM_THRESHOLD: -1, _M_TOP_PAD: 1 << 26})


@cache
def hand_back_large_blocks() -> None:
    """Hand blocks of 128 MB and more back to the kernel after all, for problems that have many of them at a time.

    What glibc keeps of them is often not fit to be used again: a graph of 170,000 nodes takes 2.7 GB instead of 4, and
    two fifths longer.
    """
    _keep_freed_memory()
    _set_allocation({_M_MMAP_MAX: _MOST_MAPPED, _M_MMAP_THRESHOLD: _LARGE})


def _set_allocation(options: dict[int, int]) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is not None:
        for option, value in options.items():
            mallopt(option, value)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within: torch, `random` and `numpy.random` draw what `seed` decides; afterwards they go on as if never used."""
    of_python, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random.seed(seed)
        # It takes words of 32 bits.
        np.random.seed([seed % 2**32, seed // 2**32 % 2**32])  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(of_python)
            np.random.set_state(of_numpy)  # noqa: NPY002


def choose_device(wanted: str) -> torch.device:
    """Return the device called auto, cpu or cuda; refuse cuda where there is none."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise InputError("training: device: cuda is not available here; take cpu or auto")
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(wanted)


@cache
def ensure_bfloat16_works() -> None:
    """Make sure that bfloat16 on this CPU does not kill the process; refuse it where nothing helps.

    Some virtual machines have CPUs that claim instructions (AMX) the system does not grant, and die of using them. A
    child process tries first; if it dies, oneDNN is held to an older instruction set, provided the child then lives.
    That setting is read when oneDNN is first used: call this before anything is computed.
    """
    if _survives({}):
        return
    if "ONEDNN_MAX_CPU_ISA" not in os.environ and _survives({"ONEDNN_MAX_CPU_ISA": _SAFE_BFLOAT16}):
        os.environ["ONEDNN_MAX_CPU_ISA"] = _SAFE_BFLOAT16
        return
    raise InputError("training: precision: bfloat16 does not work on this machine; take float32")


def _survives(environment: dict[str, str]) -> bool:
    """Return whether a child process with this environment gets through a step in bfloat16."""
    child = subprocess.run(
        [sys.executable, "-c", _PROBE], env={**os.environ, **environment}, capture_output=True, check=False
    )
    return child.returncode == 0
