"""What can be named in a study file, each with the first sentence of its description."""

import inspect

from skeleton_cgl.backbones.backbone import BACKBONES
from skeleton_cgl.methods.method import METHODS
from skeleton_cgl.registry import Registry
from skeleton_cgl.scenarios.registry import KINDS
from skeleton_cgl.skeletons.datasets import BUILT_IN


def catalogue() -> dict[str, dict[str, str]]:
    """Return name and meaning of all methods, backbones, data sets and scenarios that are known by name."""
    return {
        "methods": _described(METHODS),
        "backbones": _described(BACKBONES),
        "datasets": {
            **{name: _first_line(source) for name, source in BUILT_IN.items()},
            "PATH.h5": "An archive made by `skeleton-cgl prepare`.",
        },
        "scenarios": {name: _first_line(settings) for name, settings in KINDS.items()},
    }


def _described(registry: Registry) -> dict[str, str]:
    return {name: _summary(registry, name) for name in registry.known}


def _summary(registry: Registry, name: str) -> str:
    found = registry.find(name)
    arguments = list(inspect.signature(found.__init__).parameters.values())[1:]
    settable = [str(each).split(":")[0] for each in arguments if each.default is not inspect.Parameter.empty]
    module = inspect.getmodule(found)
    return f"{_first_line(module)} [{', '.join(settable)}]" if settable else _first_line(module)


def _first_line(described: object) -> str:
    return (inspect.getdoc(described) or "").splitlines()[0]
