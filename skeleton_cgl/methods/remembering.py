"""What methods have in common that keep samples in a memory, and nothing else."""

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from torch import Tensor

from skeleton_cgl.learning.method import Method


class Keeping(Protocol):
    """Samples, however they are chosen and kept."""

    def __len__(self) -> int: ...

    def has_room(self, sizes: Sequence[int]) -> bool:
        """Return whether it would keep all samples of lessons of these sizes."""
        ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: dict[str, Any]) -> None: ...


Kind = TypeVar("Kind", bound=Keeping)


class Remembering(Method, Generic[Kind]):
    """A method whose state is that of its `memory`, made in `__init__`."""

    memory: Kind

    def samples_kept(self) -> int:
        return len(self.memory)

    def keeps_all(self, taught: Sequence[Tensor]) -> bool:
        return self.memory.has_room(list(map(len, taught)))

    def state(self) -> dict[str, Any]:
        return self.memory.state()

    def restore(self, state: dict[str, Any]) -> None:
        self.memory.restore(state)
