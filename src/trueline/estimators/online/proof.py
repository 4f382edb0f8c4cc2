"""What is proven about a classifier that learned row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from trueline.certificates.base import Certificate
from trueline.certificates.special.mistakes import Run, certify_mistakes, open_mistakes
from trueline.design import Design
from trueline.estimators.shared.classifier import encode_declared, signs_of
from trueline.estimators.shared.parameters import settings_of
from trueline.estimators.shared.report import Certified
from trueline.online.rows import Rows, normalised, with_constant
from trueline.wording import counted

Array = NDArray[np.float64]

if TYPE_CHECKING:
    _Host = Certified
else:
    _Host = object


class _Pending(NamedTuple):
    """What a certificate will be worked out from."""

    rows: Rows
    run: Run | None


class OnlineProof(_Host):
    """The certificate, worked out from the fitted rows when it is asked for."""

    classes_: NDArray[Any]
    coef_: Any
    _class_weights: Array
    intercept_: NDArray[Any]

    def _remember(self, rows: Rows, run: Run | None = None) -> None:
        """Keep the rows until the certificate is asked for."""
        for name in ("_open_run", "_unbounded"):
            self.__dict__.pop(name, None)
        self._certificate: Certificate | _Pending = _Pending(rows, run)
        self._mark_fitted()

    def _predicting(self) -> dict[str, Any]:
        W, b = self._coefficients()
        fitted = {"coef_": W, "intercept_": b, "classes_": self.classes_}
        if hasattr(self, "votes_"):
            fitted |= {"survivors_": self.survivors_, "votes_": self.votes_}  # type: ignore[attr-defined]
        return {**fitted, "_class_weights": self._class_weights, **settings_of(self)}

    def _forget_proof(self) -> None:
        """After a batch: the rows of earlier batches are gone, nothing can be counted."""
        self.__dict__.pop("_certificate", None)
        self.__dict__.pop("_as_fitted", None)

    @property
    def certificate_(self) -> Certificate:
        """The training errors of the coefficients, counted; and the mistake bound of the run.

        After ``partial_fit`` the rows are gone: :meth:`certify` counts on rows that are given.
        """
        check_is_fitted(self)
        if "_certificate" not in self.__dict__:
            raise AttributeError(
                f"This {type(self).__name__} learned by partial_fit and kept no rows to count "
                "errors on. certify(X, y) gives a certificate about rows of your choice."
            )
        if isinstance(self._certificate, _Pending):
            rows, run = self._certificate
            self._certificate = self._certify(rows, run)
            if run is not None and self._certificate.kind != "mistake bound":
                given, k = self._targets(rows), self._certificate.coef.shape[1]
                self._open_run = run
                self._unbounded = open_mistakes(*given, self._class_weights, k, run)
        W, b = self._coefficients()
        return replace(self._certificate, coef=W, intercept=b, reading=self._verified_data)

    def certify(self, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
        """Count the errors on given rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        certificate : Certificate
            Its objective is the weight of the rows that the model gets wrong.
        """
        check_is_fitted(self)
        model: Any = self
        X, y = model._validated(X, y, reset=False)
        rows = Rows(X, model._declared(y), model._row_weights(sample_weight, X))
        return replace(self._certify(rows, None), reading=self._verified_data)

    def _certify(self, rows: Rows, run: Run | None) -> Certificate:
        W, b = self._coefficients()
        separate = not self._constant_column() and bool(self.fit_intercept)  # type: ignore[attr-defined]
        return certify_mistakes(*self._targets(rows), self._class_weights, W, b, separate, run)

    def _targets(self, rows: Rows) -> tuple[Any, Array, Array | None]:
        """Rows, signs or classes, and weights, as the certificate has them."""
        single = len(self.intercept_) == 1
        target = signs_of(rows.codes) if single else rows.codes.astype(np.float64)
        return rows.X, target, None if len(rows.weights) == 1 else rows.weights.astype(np.float64)

    def _coefficients(self) -> tuple[Array, Array]:
        """Weights of shape (d, k) and intercepts (k,), as the certificate has them."""
        W = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        W = np.asarray(W, dtype=np.float64).T
        b = np.asarray(self.intercept_, dtype=np.float64)
        if self._constant_column():  # type: ignore[attr-defined]
            return np.vstack([W, b]), np.zeros(len(b))
        return np.ascontiguousarray(W), b

    def _verified_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        codes = encode_declared(y, self.classes_)
        target = signs_of(codes) if len(self.intercept_) == 1 else codes
        X = X if sp.issparse(X) or isinstance(X, Design) else np.asarray(X)
        if X.dtype not in (np.float64, np.float32):  # whole numbers have no rows of norm one
            X = X.astype(np.float64)
        if sample_weight is not None:  # as the passes have them
            sample_weight = np.asarray(sample_weight, dtype=X.dtype).astype(np.float64)
        if self.normalize_rows:  # type: ignore[attr-defined]
            X = normalised(X)
        if self._constant_column():  # type: ignore[attr-defined]
            X = with_constant(X)
        return X, target, sample_weight

    def _settle(self) -> None:
        """Before saving: work out what is pending, drop what is found again."""
        if "_certificate" in self.__dict__:
            _ = self.certificate_
        for name in ("_row_state", "_seeds_of", "_open_run"):
            self.__dict__.pop(name, None)

    def _lines_planned(self, X: Any, y: Any) -> list[str]:
        model: Any = self
        rule, (n, d) = model._rule(), np.shape(X)
        return [
            f"rule       {rule.name}: w <- w + y step x, step = {rule.formula}",
            f"visits     at most {model.max_iter} passes over {counted(n, 'row')} of "
            f"{counted(d, 'column')}",
        ]

    def _lines_done(self) -> list[str]:
        model: Any = self
        rule, tally = model._rule(), model._tally
        lines = [
            f"rule       {rule.name}: w <- w + y step x, step = {rule.formula}",
            f"visits     {counted(int(tally[:, 0].max()), 'row')}, "
            f"passes: {int(getattr(model, 'n_iter_', 1))}",
            f"learned    {counted(int(tally[:, 2].sum()), 'update')}, "
            f"{counted(int(tally[:, 3].sum()), 'mistake')}",
        ]
        if "_certificate" not in vars(self):
            return lines
        certificate = self.certificate_
        return lines + lines_of_errors(certificate, vars(self).get("_unbounded", ()))


def lines_of_errors(
    certificate: Certificate, unbounded: Sequence[tuple[int, float]] = ()
) -> list[str]:
    """The errors that were counted, the bound on the updates if there is one, and the proof.

    Of a run that found no separator, what would bound its updates: see ``open_mistakes``.
    """
    w = certificate.witness
    bounds = [
        f"bound      {w['mistakes'][r]:.0f} updates <= {bound:.6g}"
        f"   (R = {w['radius'][r]:.4g}, gamma = {w['gamma'][r]:.4g})"
        for r, bound in enumerate(np.atleast_1d(w.get("bound", [])))
    ]
    bounds += [
        f"bound      {made} updates so far; if a separator has margin gamma, at most {scale:.6g} / "
        f"gamma^2 - {made} more, so that gamma <= {np.sqrt(scale / made):.4g}"
        for made, scale in unbounded
        if made
    ]
    errors = f"errors     {certificate.objective:.10g} of the training rows (weighted)"
    return [errors, *bounds, f"proof      {certificate.statement}"]


def widest_plane(X: Any, y: Array, step: float) -> tuple[Array, Array] | None:
    """The separator of largest margin, the intercept as the weight of a column of sqrt(step)."""
    from trueline.separation.margin import largest_margin

    X = X.astype(np.float64)
    if step > 0:
        column = np.full((X.shape[0], 1), np.sqrt(step))
        X = sp.csr_array(sp.hstack([X, column])) if sp.issparse(X) else np.hstack([X, column])
    classes, codes = np.unique(y, return_inverse=True)
    try:
        best = largest_margin(X, codes, classes, fit_intercept=False)
    except ArithmeticError:
        return None
    V = np.atleast_2d(best.coef).T
    return (V[:-1], np.sqrt(step) * V[-1]) if step > 0 else (V, np.zeros(V.shape[1]))
