"""What a backbone is: a module that maps a batch of inputs to embeddings."""

import json
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from skeleton_cgl.blame import blamed
from skeleton_cgl.errors import InputError
from skeleton_cgl.process import seeded
from skeleton_cgl.registry import CLIP_BACKBONES, GRAPH_BACKBONES, Registry
from skeleton_cgl.scenarios.inputs import Inputs
from skeleton_cgl.scenarios.scenario import Facts
from skeleton_cgl.seeds import seed_of


class Backbone(nn.Module):
    """Derive from this and define `forward`: (N, C, T, V) clips in, (N, width) embeddings out.

    The constructor may ask by name for what the scenario offers (skeletons: `layout`, `frames`, `channels`); its other
    arguments are parameters a study may set. Optional: `arrange(clips)`, called once with all clips of the data set,
    returns what `forward` then gets rows of; `edge_attention(inputs)`, which TWP needs; `aggregated(inputs)`, which
    PDGNN-TEM needs: vectors (N·m, F) that, as features of nodes without neighbours, get the embeddings of the places;
    `gated()`, which HAT needs: the weights between gates of units (backbones/gates.py); `join(embeddings, inputs)`, to
    make one embedding of those of a query (backbones/joins.py). A backbone for graphs says so in `takes`; it gets
    `Places` in a graph, and gives an embedding for each: whole graphs come as all their nodes.

    younger, gone: parameters that came or went while records were kept, each with the value that means "as before", so
    that keys stay what they were. version: raised when the backbone comes to other numbers; keys have it.
    """

    takes: ClassVar[Literal["clips", "graph"]] = "clips"
    younger: ClassVar[Mapping[str, Any]] = {}
    gone: ClassVar[Mapping[str, Any]] = {}
    version: ClassVar[int] = 1

    identity: Hashable = None
    """Class and parameters, set by `make_backbone`; backbones of one identity arrange alike."""

    @classmethod
    def spelled_out(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of a built-in backbone with what they leave unsaid, so that one meaning has one key."""
        return parameters

    def arrange(self, clips: Any) -> Any:
        """Return the clips (N, C, T, V) of a data set in the form `forward` wants: tensors with N rows."""
        return clips


_KINDS = {"clips": CLIP_BACKBONES, "graph": GRAPH_BACKBONES}


def backbones_for(takes: str) -> Registry:
    """Return the registry of the backbones that take clips, or graphs."""
    return _KINDS[takes]


def make_backbone(name: str, parameters: Mapping[str, Any], facts: Facts, seed: int) -> Backbone:
    """Return the backbone called `name`, its first weights drawn from `seed`; refuse unknown names and parameters."""
    registry = backbones_for(facts.takes)
    others = [each for each in _KINDS.values() if each is not registry and each.is_built_in(name)]
    found: type[Backbone] = (registry if registry.knows(name) else (*others, registry)[0]).find(name)
    if found.takes != facts.takes:
        raise InputError(f"backbone {name!r} takes {_plural(found.takes)}; the scenario has {_plural(facts.takes)}")
    with seeded(seed_of("backbone", seed)):
        backbone: Backbone = registry.make(name, parameters, facts.offered)
    backbone.identity = (found, json.dumps(dict(parameters), sort_keys=True, default=repr))
    return backbone


def embedding_width(backbone: Backbone, inputs: Inputs) -> int:
    """Return the width of the backbone's embeddings; refuse a backbone that does not give one per place of `inputs`."""
    name, content, expected = type(backbone).__name__, inputs.content, inputs.embedded
    if type(backbone).forward is nn.Module.forward:
        raise InputError(f"backbone {name}: method `forward` is missing; expected forward(clips) -> (N, width)")
    training = backbone.training
    backbone.eval()
    try:
        with torch.no_grad():
            embeddings = backbone(content)
    except Exception as error:
        raise InputError(
            f"backbone {name}: fails on {_describe(content)}: {blamed(error, backbone)}; "
            f"expected embeddings ({expected}, width)"
        ) from error
    finally:
        backbone.train(training)
    if not isinstance(embeddings, Tensor):
        raise InputError(f"backbone {name}: expected a tensor ({expected}, width), found {type(embeddings).__name__}")
    if embeddings.ndim != 2 or len(embeddings) != expected or not embeddings.is_floating_point():
        raise InputError(
            f"backbone {name}: expected embeddings ({expected}, width) for inputs of {_describe(content)}, "
            f"found {embeddings.dtype} {tuple(embeddings.shape)}"
        )
    if not any(parameter.requires_grad for parameter in backbone.parameters()):
        raise InputError(f"backbone {name}: has no parameter to train")
    return embeddings.shape[1]


def _plural(takes: str) -> str:
    return {"clips": "clips", "graph": "graphs"}[takes]


def _describe(content: Any) -> str:
    parts = content if isinstance(content, tuple) else (content,)
    return ", ".join(str(tuple(part.shape)) if isinstance(part, Tensor) else type(part).__name__ for part in parts)
