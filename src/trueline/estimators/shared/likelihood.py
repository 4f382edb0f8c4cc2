r"""Likelihood, posterior and criteria of fitted models, from the loss and the penalty alone.

With the noise of the loss (:mod:`trueline.losses.noise`), its scale phi and the prior of the
penalty (:mod:`trueline.penalties.prior`), over n rows (the sum of the weights s_i)

    log L      = -sum_i s_i l_i / phi + n c(phi) + sum_i s_i h(y_i)
    posterior  = log L + log p(w),     up to the evidence, which does not depend on w
    AIC        = -2 log L + 2 p,       BIC = -2 log L + p log n

p counts coefficients and intercept; those that a penalty keeps at zero do not count, and those that
it shrinks count in part, tr (H + P)^-1 H, with the second derivatives H of the loss and P of the
penalty. The scale phi is not counted, as in statsmodels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from trueline.estimators.shared.base import Array, Host
from trueline.estimators.shared.objective import Objective
from trueline.estimators.shared.validation import weights_of
from trueline.losses.noise import Noise
from trueline.penalties.prior import log_prior


def rows_likelihood(
    model: Any, X: Any, y: Any, sample_weight: Any, phi: float, **data: Any
) -> float:
    """The log-likelihood of given rows at the scale phi."""
    noise = _noise(model._resolved_certificate())
    objective = model.objective(X, y, sample_weight, **data)
    s = weights_of(sample_weight, objective.problem.n_samples)
    rows, loss = float(s.sum()), objective.loss()
    if "maximum" in objective.problem.loss.capabilities:
        # Beyond the largest error there is no noise; rounding of the fitted rows apart.
        return rows * noise.level(phi) if loss <= phi * (1 + 1e-9) else -np.inf
    level = of_targets(noise, y, s)
    return float(-loss / phi + rows * noise.level(phi) + level)


def log_posterior(
    self: Any,
    X: Any = None,
    y: Any = None,
    sample_weight: Any = None,
    *,
    dispersion: float | None = None,
    **data: Any,
) -> float:
    """The log-likelihood plus the logarithm of the prior that the penalty is.

    The coefficients of the fit are where it is largest. The evidence, by which both would be
    divided to have a density, is left out: it does not depend on them.

    Parameters
    ----------
    X, y, sample_weight, dispersion, **data
        As in :meth:`log_likelihood`.

    Returns
    -------
    value : float
        For one target. Without a penalty the prior is flat, and this is the log-likelihood.
    """
    phi = self._dispersion() if dispersion is None else dispersion
    certificate = self.certificate_
    prior = log_prior(certificate.penalty, certificate.coef, phi)
    likelihood = self.log_likelihood(X, y, sample_weight, dispersion=phi, **data)
    return float(likelihood) + prior


class Likelihood(Host):
    """Adds ``log_likelihood``, ``log_posterior``, ``aic`` and ``bic``."""

    _total_weight: float
    #: sum_i s_i h(y_i), zero for most losses.
    _level_of_target: float = 0.0

    def _mean_loss(self) -> float:
        """The losses of the fitted rows, per unit of weight (the largest, for a maximum)."""
        certificate = self._resolved_certificate()
        loss = certificate.objective - certificate.penalty.value(certificate.coef)
        is_maximum = "maximum" in certificate.loss.capabilities
        return loss if is_maximum else loss / self._rows_fitted()

    def _rows_fitted(self) -> float:
        """The sum of the weights of the fit."""
        if not hasattr(self, "_total_weight"):
            raise ValueError(
                "This model was fitted together with others, or loaded from a file of an earlier "
                "version, and does not know how many rows it was fitted to: fit it by itself."
            )
        return self._total_weight

    def _dispersion(self) -> float:
        scale = _noise(self._resolved_certificate()).scale
        return 1.0 if scale is None else scale(self._mean_loss())

    def log_likelihood(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        dispersion: float | None = None,
        **data: Any,
    ) -> float:
        """The logarithm of the probability (density) of targets, under the fitted model.

        The loss says which noise that is: ``certificate_.loss.noise``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), optional
            Rows, those of the fit or new ones; without them, the rows of the fit.
        y : array-like of shape (n,), optional
        sample_weight : array-like of shape (n,), optional
            Weight 2 counts a row twice.
        dispersion : float, optional
            The scale phi of the noise; by default the one under which the rows of the fit are most
            likely.
        **data
            What else ``fit`` takes of the rows: ``offset`` and ``exposure`` of some models.

        Returns
        -------
        value : float
        """
        check_is_fitted(self)
        phi = self._dispersion() if dispersion is None else float(dispersion)
        if X is not None:
            return rows_likelihood(self, X, y, sample_weight, phi, **data)
        certificate = self._resolved_certificate()
        noise, mean = _noise(certificate), self._mean_loss()
        if "maximum" in certificate.loss.capabilities:
            return self._rows_fitted() * noise.level(phi) if mean <= phi else -np.inf
        total = self._rows_fitted() * (noise.level(phi) - mean / phi)
        return float(total + self._level_of_target)

    log_posterior = log_posterior

    def aic(self, X: Any = None, y: Any = None, sample_weight: Any = None, **data: Any) -> float:
        """Akaike's information criterion, ``-2 log-likelihood + 2 p``; smaller is better.

        Parameters
        ----------
        X, y, sample_weight, **data
            As in :meth:`log_likelihood`. With a squared penalty the rows are needed, which decide
            how many parameters p its coefficients count for.

        Returns
        -------
        value : float
        """
        return self._criterion_of(2.0, X, y, sample_weight, **data)

    def bic(self, X: Any = None, y: Any = None, sample_weight: Any = None, **data: Any) -> float:
        """Schwarz's Bayesian information criterion, ``-2 log-likelihood + p log n``.

        Parameters
        ----------
        X, y, sample_weight, **data
            As in :meth:`aic`.

        Returns
        -------
        value : float
        """
        return self._criterion_of(None, X, y, sample_weight, **data)

    def _criterion_of(
        self, price: float | None, X: Any, y: Any, sample_weight: Any, **data: Any
    ) -> float:
        value = -2.0 * self.log_likelihood(X, y, sample_weight, **data)
        if X is None:
            rows, objective = self._rows_fitted(), None
        else:
            objective = self.objective(X, y, sample_weight, **data)
            rows = float(weights_of(sample_weight, objective.problem.n_samples).sum())
        price = float(np.log(rows)) if price is None else price
        return value + price * _freedom(self, objective)


def _noise(certificate: Any) -> Noise:
    if certificate.kind == "stationary":
        raise ValueError("With Firth's correction what is minimised is no likelihood.")
    noise: Noise | None = certificate.loss.noise_model
    if noise is None:
        raise AttributeError(
            f"The {certificate.loss.name} loss is not the negative logarithm of a density that is "
            "known here: the model has no likelihood."
        )
    return noise


def of_targets(noise: Noise | None, y: Any, s: Array | None) -> float:
    """sum_i s_i h(y_i)."""
    if noise is None or noise.of_target is None:
        return 0.0
    target = np.asarray(y, dtype=np.float64)
    if s is None:
        return float(noise.of_target(target).sum())
    is_used = s > 0
    return float(s[is_used] @ noise.of_target(target[is_used]))


def _freedom(model: Any, objective: Objective | None) -> float:
    """The number of parameters p."""
    certificate = model._resolved_certificate()
    penalty, W = certificate.penalty, certificate.coef
    is_joint, level = "multinomial" in certificate.loss.capabilities, certificate.fit_intercept
    k = W.shape[1] - is_joint  # of all classes together one set of parameters is free
    if np.any(penalty.curvature):
        if objective is None:
            raise ValueError(
                "Coefficients that a squared penalty shrinks count in part, by an amount that "
                "depends on the rows: give the rows of the fit, as in aic(X, y)."
            )
        return _trace(objective)
    if np.any(penalty.linear):
        return float(np.count_nonzero(W) + k * level)
    return float(k * (getattr(model, "rank_", len(W)) + level))


def _trace(objective: Objective) -> float:
    """tr (H + P)^-1 H over the coefficients that are not zero, and the intercepts."""
    problem = objective.problem
    W, b = objective._placed(None, None)
    z, y = problem.scores(W, b), problem.target
    d, k = W.shape
    A = np.hstack([problem.design.toarray(), np.ones((len(z), int(problem.fit_intercept)))])
    if "multinomial" in problem.loss.capabilities:
        p = problem.loss.hessian_terms(y, z)
        own_curvature = p[:, :, None] * (np.eye(k) - p[:, None, :])
    else:
        own_curvature = problem.loss.curvature(y, z)[:, :, None] * np.eye(k)
    if problem.weights is not None:
        own_curvature = own_curvature * problem.weights[:, None, None]
    H = np.einsum("ni,nkl,nj->kilj", A, own_curvature, A, optimize=True).reshape(
        2 * (k * A.shape[1],)
    )
    P = np.zeros((k, A.shape[1]))
    P[:, :d] = np.broadcast_to(problem.penalty.curvature, (d, k)).T
    used = np.ones_like(P, dtype=bool)
    if np.any(problem.penalty.linear):
        used[:, :d] = W.T != 0
    kept = np.flatnonzero(used.ravel())
    H, P = H[np.ix_(kept, kept)], P.ravel()[kept]
    size = np.sqrt(H.diagonal() + P)
    size = np.where(size > 0, size, 1.0)
    H = H / np.outer(size, size)
    return float(np.trace(np.linalg.lstsq(H + np.diag(P / size**2), H, rcond=1e-12)[0]))
