"""What kind of method a fitted model is: the columns that a lecture compares methods by.

A model is probabilistic if it says how probable targets are: of regression, if its loss is the
negative logarithm of a density; of classification, if it has ``predict_proba`` from its loss. All
others are deterministic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.base import is_classifier

#: What a loss estimates, of the targets at a row.
_ESTIMATES = {
    "squared": "mean",
    "absolute": "median",
    "quantile": "quantile",
    "maximum_error": "middle of the range",
    "huber": "centre, robustly",
    "epsilon_insensitive": "centre, within a tube",
    "squared_epsilon_insensitive": "centre, within a tube",
    "poisson": "mean, its logarithm linear",
    "gamma": "mean, its logarithm linear",
    "tweedie": "mean, its logarithm linear",
    "deviance": "mean",
}
#: Losses of models that state no problem with a single loss, by class.
_LOSSES = {
    "Perceptron": "max(0, -y z), in passes over the rows",
    "KernelPerceptron": "max(0, -y z), in passes over the rows",
    "PassiveAggressiveClassifier": "max(0, 1 - y z), row by row",
    "OnlineLogisticRegression": "log(1 + exp(-y z)), row by row",
    "SVC": "max(0, 1 - y z)",
    "NuSVC": "max(0, rho - y z)",
    "SVR": "max(0, |z - y| - epsilon)",
    "NuSVR": "max(0, |z - y| - epsilon)",
    "KernelRidge": "1/2 (z - y)^2",
    "GaussianProcessRegressor": "1/2 (z - y)^2",
    "DummyRegressor": "1/2 (z - y)^2",
    "DummyClassifier": "1 if wrong, else 0",
}


class Method(NamedTuple):
    """A row of the table of methods."""

    view: str
    loss: str
    estimates: str
    proof: str


def method_of(model: Any) -> Method:
    """What is minimised, what is estimated and what is proven, of a fitted model or pipeline.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import LeastAbsoluteDeviations
    >>> from trueline.evaluation.methods import method_of
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 5.0])
    >>> method_of(LeastAbsoluteDeviations().fit(X, y))
    Method(view='probabilistic', loss='|z - y|', estimates='median', proof='duality')
    """
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    name = type(last).__name__
    certificate = getattr(last, "certificate_", None)
    loss: Any = getattr(certificate, "loss", None)
    proof = getattr(certificate, "kind", "")
    text = _LOSSES.get(name) or str(getattr(loss, "formula", ""))
    if is_classifier(last):
        has_probabilities = hasattr(last, "predict_proba") and name not in ("SVC", "NuSVC")
        estimates = "probability of each class" if has_probabilities else "class, by a score"
        if name == "DummyClassifier":
            return Method("deterministic", text, "most frequent class", proof)
        return Method(_view(has_probabilities), text, estimates, proof)
    known = getattr(loss, "name", "squared" if text == "1/2 (z - y)^2" else "epsilon_insensitive")
    is_process = name == "GaussianProcessRegressor"
    has_density = is_process or getattr(loss, "noise", None) is not None
    estimates = "distribution of functions" if is_process else _ESTIMATES.get(known, "")
    if known == "quantile":
        estimates = f"quantile {loss.q:g}" if isinstance(loss.q, float) else "quantiles"
    return Method(_view(has_density), text, estimates, proof)


def _view(is_probabilistic: bool) -> str:
    return "probabilistic" if is_probabilistic else "deterministic"
