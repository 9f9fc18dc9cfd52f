"""What decides the last bits of a sum: the processor and what computes on it. And which source made a record.

The same study gives the same numbers where the fingerprint is the same. Elsewhere sums are taken in another sequence,
and what is learned from them drifts apart.
"""

import hashlib
import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch
from threadpoolctl import threadpool_info

from skeleton_cgl.engine.record import Facts

_LIBRARY = Path(__file__).parents[1]
_PACKAGES = ("torch", "numpy", "scipy", "dgl")
_INSTRUCTIONS = ("avx", "avx2", "fma", "avx512f", "avx512vl", "avx512_bf16", "avx512_vnni", "amx_tile", "asimd", "sve")
"""Those that linear algebra is written for; what a processor has of them decides which kernels run."""
_LIMITS = ("ATEN_CPU_CAPABILITY", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA", "OPENBLAS_CORETYPE")
"""Variables of the environment that hold libraries to fewer instructions."""


def fingerprint(device: torch.device) -> Facts:
    """Return what decides the last bits of a sum in this process, as it is now."""
    return _fingerprint(device.type, torch.get_num_threads())


@cache
def _fingerprint(device: str, threads: int) -> Facts:
    # It brings a BLAS of its own, which would otherwise be told only once some method has needed it.
    import scipy.linalg  # noqa: F401

    blas = [f"{each['internal_api']} {each['version']}" for each in threadpool_info() if each["user_api"] == "blas"]
    facts = {
        "processor": _processor(),
        "instructions": " ".join([torch.backends.cpu.get_cpu_capability(), *_instructions()]),
        "threads": str(threads),
        "BLAS": ", ".join(sorted({"mkl" if torch.backends.mkl.is_available() else "no mkl", *blas})),
        **{package: _version(package) for package in _PACKAGES},
        "Python": platform.python_version(),
        **{name: os.environ[name] for name in _LIMITS if name in os.environ},
    }
    if device == "cuda":
        facts["device"] = torch.cuda.get_device_name()
    return tuple(facts.items())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _processor() -> str:
    told = _of_processor()
    numbers = "/".join(told[field] for field in ("cpu family", "model", "stepping") if field in told)
    return f"{told.get('model name', platform.processor() or platform.machine())} {numbers}".strip()


def _instructions() -> list[str]:
    told = _of_processor()
    flags = {*told.get("flags", "").split(), *told.get("Features", "").split()}
    return [each for each in _INSTRUCTIONS if each in flags]


@cache
def _of_processor() -> dict[str, str]:
    """Return what Linux says of the first processor; nothing elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    lines = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}


@cache
def source_digest(folder: Path = _LIBRARY) -> str:
    """Return a digest of the library's source: of every module, by name and content."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]
