"""Average precision and ROC area: scikit-learn's numbers, to the bit."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from skeleton_cgl.scenarios.ranking import average_precision, roc_area


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_both_are_those_of_scikit_learn_to_the_bit(ties: bool, kind: type[np.floating]) -> None:
    random = np.random.default_rng(0)
    for _ in range(100):
        number = random.integers(2, 200)
        labels = (random.random(number) < random.uniform(0.05, 0.9)).astype(np.float32)
        labels[:2] = 0, 1
        answers = random.normal(size=number).astype(kind)
        answers = np.round(answers * random.integers(1, 4)) if ties else answers
        assert average_precision(labels, answers) == average_precision_score(labels, answers)
        assert roc_area(labels, answers) == roc_auc_score(labels, answers)


def test_the_ends_of_both_scales() -> None:
    labels, rising = np.array([0, 0, 1, 1]), np.array([1.0, 2.0, 3.0, 4.0])
    assert (average_precision(labels, rising), roc_area(labels, rising)) == (1.0, 1.0)
    assert roc_area(labels, -rising) == 0.0
    assert average_precision(labels, -rising) == pytest.approx((1 / 3 + 2 / 4) / 2)
    assert (average_precision(labels, np.zeros(4)), roc_area(labels, np.zeros(4))) == (0.5, 0.5)
