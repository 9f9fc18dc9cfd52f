"""Backbone and head in one."""

from typing import Any

from torch import Tensor, nn

from skeleton_cgl.backbones.backbone import Backbone
from skeleton_cgl.backbones.head import Head
from skeleton_cgl.backbones.joins import Join, mean
from skeleton_cgl.errors import InputError
from skeleton_cgl.scenarios.inputs import Inputs


class Model(nn.Module):
    """Inputs to outputs; the embeddings of one query are joined into one on the way.

    width: that of the backbone's embeddings; without it they are as wide as what they are joined to.
    """

    def __init__(self, backbone: Backbone, head: Head, join: Join = mean, width: int | None = None) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head
        self.width = head.width if width is None else width
        # In a tuple: a module that is a part of the backbone must not count as one of the model's own as well.
        self._join = (join,)

    def forward(self, inputs: Inputs) -> Tensor:
        """Return (N, outputs met)."""
        outputs: Tensor = self.head(self.embed(inputs))
        return outputs

    def embed(self, inputs: Inputs) -> Tensor:
        """Return (N, width), what the head is given."""
        embeddings: Tensor = self.backbone(inputs.content)
        # Otherwise one embedding would do for all, by broadcasting.
        self._check(embeddings, (inputs.embedded, self.width), "one per place of every query")
        joined = self._join[0](embeddings, inputs)
        self._check(joined, (len(inputs), self.head.width), "one per query when they are joined")
        return joined

    def _check(self, found: Any, expected: tuple[int, int], which: str) -> None:
        if getattr(found, "shape", None) != expected:
            shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            name = type(self.backbone).__name__
            raise InputError(f"backbone {name}: expected embeddings {expected}, {which}, found {shape}")
