"""What a backbone is: a module that maps a batch of inputs to one embedding per query."""

import inspect
import traceback
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from skeleton_cgl.errors import InputError
from skeleton_cgl.registry import Registry
from skeleton_cgl.seeds import seed_of


class Backbone(nn.Module):
    """Derive from this and define `forward`: (N, C, T, V) clips in, (N, width) embeddings out.

    The constructor may ask by name for what the scenario offers (skeletons: `layout`, `frames`, `channels`); its other
    arguments are parameters a study may set. Optional: `arrange(clips)`, called once with all clips of the data set,
    returns what `forward` then gets rows of; `edge_attention(inputs)`, which TWP needs.
    """

    recipe: str = ""
    """Class and parameters in words; set by `make_backbone`."""

    def arrange(self, clips: Tensor) -> Any:
        """Return the clips (N, C, T, V) of a data set in the form `forward` wants: tensors with N rows."""
        return clips


class EachActor(Backbone):
    """Embeds every actor of (N, A, C, T, V) clips by the same backbone; the embedding is their mean."""

    def __init__(self, one: Backbone, actors: int) -> None:
        super().__init__()
        self.one = one
        self.actors = actors

    def arrange(self, clips: Tensor) -> Any:
        arranged = self.one.arrange(clips.flatten(0, 1))
        if isinstance(arranged, tuple):
            return tuple(part.unflatten(0, (-1, self.actors)) for part in arranged)
        return arranged.unflatten(0, (-1, self.actors))

    def forward(self, inputs: Any) -> Tensor:
        return self.one(self._flat(inputs)).unflatten(0, (-1, self.actors)).mean(dim=1)

    @property
    def edge_attention(self) -> Callable[[Any], list[Tensor]]:
        """The method of the one backbone, on all actors; missing where it is missing there."""
        attention = self.one.edge_attention
        return lambda inputs: attention(self._flat(inputs))

    def _flat(self, inputs: Any) -> Any:
        if isinstance(inputs, tuple):
            return tuple(part.flatten(0, 1) for part in inputs)
        return inputs.flatten(0, 1)


BACKBONES = Registry(
    kind="backbone",
    base="skeleton_cgl.backbones.backbone:Backbone",
    known={
        "gcn": "skeleton_cgl.backbones.gcn:GCN",
        "stgcn": "skeleton_cgl.backbones.stgcn:STGCN",
    },
)


def make_backbone(name: str, parameters: dict[str, Any], offered: dict[str, Any], seed: int) -> Backbone:
    """Return the backbone called `name`, its first weights drawn from `seed`; refuse unknown names and parameters."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of("backbone", seed))
        backbone = BACKBONES.make(name, parameters, offered)
    if offered.get("actors", 1) > 1:
        backbone = EachActor(backbone, offered["actors"])
    backbone.recipe = f"{name} {sorted(parameters.items())}"
    return backbone


def embedding_width(backbone: Backbone, inputs: Any, rows: int) -> int:
    """Return the width of the backbone's embeddings; refuse a backbone that does not give one per row of `inputs`."""
    if isinstance(backbone, EachActor):
        return embedding_width(backbone.one, backbone._flat(inputs), rows * backbone.actors)
    name = type(backbone).__name__
    if type(backbone).forward is nn.Module.forward:
        raise InputError(f"backbone {name}: method `forward` is missing; expected forward(clips) -> (N, width)")
    training = backbone.training
    backbone.eval()
    try:
        with torch.no_grad():
            embeddings = backbone(inputs)
    except Exception as error:
        raise InputError(
            f"backbone {name}: fails on {_describe(inputs)}{_line_of(error, backbone)}: "
            f"{type(error).__name__}: {error}; expected embeddings ({rows}, width)"
        ) from error
    finally:
        backbone.train(training)
    if not isinstance(embeddings, Tensor):
        raise InputError(f"backbone {name}: expected a tensor ({rows}, width), found {type(embeddings).__name__}")
    if embeddings.ndim != 2 or len(embeddings) != rows or not embeddings.is_floating_point():
        raise InputError(
            f"backbone {name}: expected embeddings ({rows}, width) for inputs of {_describe(inputs)}, "
            f"found {embeddings.dtype} {tuple(embeddings.shape)}"
        )
    if not any(parameter.requires_grad for parameter in backbone.parameters()):
        raise InputError(f"backbone {name}: has no parameter to train")
    return embeddings.shape[1]


def _line_of(error: Exception, backbone: Backbone) -> str:
    """Return " at FILE, line N": the last line of the backbone's own file on the way to the error."""
    file = inspect.unwrap(type(backbone).forward).__code__.co_filename
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f" at {file}, line {lines[-1]}" if lines else ""


def _describe(inputs: Any) -> str:
    parts = inputs if isinstance(inputs, tuple) else (inputs,)
    return ", ".join(str(tuple(part.shape)) if isinstance(part, Tensor) else type(part).__name__ for part in parts)
