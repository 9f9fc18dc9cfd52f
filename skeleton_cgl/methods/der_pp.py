"""DER++ (Buzzega et al. 2020): dark experience replay, and the labels of remembered samples beside it."""

from skeleton_cgl.methods.der import DER, Passes
from skeleton_cgl.methods.parameters import check_number


class DERPlusPlus(DER):
    """L(batch) + α · mean ‖z − z₀‖²/K + β · L(B), with two independent draws of min(|batch|, b) from the reservoir.

    All else as in DER, which β = 0 is; all of it passes through the backbone together.
    """

    def __init__(self, alpha: float = 0.3, beta: float = 0.5, count: int = 100, passes: Passes = "every") -> None:
        super().__init__(alpha, count, passes)
        if not beta >= 0:
            raise ValueError(f"beta {beta} is not a number of at least 0")
        check_number(beta=beta)
        self.beta = beta
