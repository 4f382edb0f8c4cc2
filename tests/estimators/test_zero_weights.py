"""Sample weights that are all zero leave no row to fit, which every model says."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as Peer

from trueline import (
    CalibratedClassifier,
    ChainedClassifiers,
    KernelPerceptron,
    Ridge,
    RidgeClassifier,
    regularization_path,
)
from trueline.evaluation import cross_validate

X = np.arange(12.0).reshape(6, 2) % 5
LABELS = np.array([0, 1, 0, 1, 1, 0])
NONE = np.zeros(6)

FITS = {
    "ridge": lambda: Ridge().fit(X, LABELS, NONE),
    "class weights": lambda: RidgeClassifier(class_weight="balanced").fit(X, LABELS, NONE),
    "kernel": lambda: KernelPerceptron().fit(X, LABELS, sample_weight=NONE),
    "calibrated": lambda: CalibratedClassifier(Peer(), cv=2).fit(X, LABELS, NONE),
    "chained": lambda: ChainedClassifiers([("a", Peer())], cv=2).fit(X, LABELS, sample_weight=NONE),
    "path": lambda: regularization_path(X, LABELS, sample_weight=NONE),
    "cross-validation": lambda: cross_validate(Ridge(), X, LABELS, cv=2, sample_weight=NONE),
}


@pytest.mark.parametrize("name", FITS)
def test_weights_that_are_all_zero_are_refused(name):
    # scikit-learn's words where it refuses them itself, else ours.
    with pytest.raises(ValueError, match="at least one non-zero number|all zero: no row is left"):
        FITS[name]()
