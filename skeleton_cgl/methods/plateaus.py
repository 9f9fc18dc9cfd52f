"""Finding plateaus in a row of losses, for methods that are told of no borders between lessons."""

from math import sqrt
from statistics import fmean
from typing import Any

from skeleton_cgl.methods.parameters import check_number, check_whole


class PlateauDetector:
    """Looks at the last `window` losses, as soon as there are so many: their mean μ, and v = mean (loss − μ)².

    Armed, which it is at first, it finds a plateau where μ < `mean` and v < `variance`. It then has μ₀ = μ and v₀ = v
    and finds no other before a peak, μ > μ₀ + √v₀, has armed it again: from the next loss on. The window goes on.
    """

    def __init__(self, window: int = 5, mean: float = 0.2, variance: float = 0.1) -> None:
        check_whole(1, window=window)
        check_number(above=0, mean=mean, variance=variance)
        self.window = window
        self.mean = mean
        self.variance = variance
        self._losses: list[float] = []
        self._plateau: tuple[float, float] | None = None
        """μ₀ and v₀, until there was a peak."""

    @property
    def armed(self) -> bool:
        return self._plateau is None

    def finds_plateau(self, loss: float) -> bool:
        """Take in one more loss; return whether a plateau is reached with it."""
        self._losses = [*self._losses, loss][-self.window :]
        if len(self._losses) < self.window:
            return False
        mean = fmean(self._losses)
        variance = fmean((each - mean) ** 2 for each in self._losses)
        if self._plateau is None:
            if mean < self.mean and variance < self.variance:
                self._plateau = mean, variance
                return True
        elif mean > self._plateau[0] + sqrt(self._plateau[1]):
            self._plateau = None
        return False

    def state(self) -> dict[str, Any]:
        return {"losses": self._losses, "plateau": self._plateau}

    def restore(self, state: dict[str, Any]) -> None:
        self._losses = list(state["losses"])
        self._plateau = None if state["plateau"] is None else tuple(state["plateau"])
