"""Probabilities of binary problems to those of the classes.

Problem l of a code book compares the classes on its sides I_l+ and I_l-; its part says with
probability r_l that a row is of the first, given that it is of either. Wanted are p_1, ..., p_K,
not negative and of sum one, with

    r_l  ~  q_l+ / q_l,     q_l+ = sum over c in I_l+ of p_c,     q_l = q_l+ + q_l-.

**likelihood** maximises sum_l [r_l log(q_l+ / q_l) + (1 - r_l) log(q_l- / q_l)] by the iteration

    p_c <- p_c  (sum over l with c in I_l+ of r_l / q_l+  +  over c in I_l- of (1 - r_l) / q_l-)
                / (sum over l with c in I_l of 1 / q_l),    then divided by the sum of all p,

which never lowers it (T.-K. Huang, R. C. Weng, C.-J. Lin, "Generalized Bradley-Terry models and
multi-class probability estimates", J. Machine Learning Research 7 (2006) 85-115). On pairs of
classes this is the coupling of T. Hastie, R. Tibshirani, "Classification by pairwise coupling",
Ann. Statist. 26 (1998) 451-471, with equal weights.

**least squares**, for pairs, minimises sum over i < j of (r_ji p_i - r_ij p_j)^2 by one system of
linear equations, whose solution is never negative (T.-F. Wu, C.-J. Lin, R. C. Weng, "Probability
estimates for multi-class classification by pairwise coupling", J. Machine Learning Research 5
(2004) 975-1005, section 4.2).

Votes and distances decide by other means than probabilities, and now and then for another class
than the most probable one. :func:`agreeing` moves such rows to the nearest probabilities among
which the chosen class is the highest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Certainty on both sides at once would contradict itself: a little doubt is always left.
_DOUBT = 1e-12
_BLOCK = 1 << 22  # numbers held at a time
_LIMIT = 2000
_TOLERANCE = 1e-10


def couple_least_squares(positive: Array, n_classes: int) -> Array:
    """Pairwise probabilities to those of the classes, by linear equations.

    Parameters
    ----------
    positive : array of shape (n, K (K - 1) / 2)
        For each pair i < j, in the order (0, 1), (0, 2), ..., the probability of j.
    n_classes : int

    Returns
    -------
    p : array of shape (n, K)

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.estimators.shared.coupling import couple_least_squares
    >>> p = np.array([0.5, 0.3, 0.2])
    >>> pairs = [[p[1] / (p[0] + p[1]), p[2] / (p[0] + p[2]), p[2] / (p[1] + p[2])]]
    >>> couple_least_squares(np.array(pairs), 3).round(12)
    array([[0.5, 0.3, 0.2]])
    """
    first, second = np.triu_indices(n_classes, 1)
    step = max(1, _BLOCK // (n_classes + 1) ** 2)
    out = np.empty((len(positive), n_classes))
    for start in range(0, len(positive), step):
        r = np.clip(positive[start : start + step], _DOUBT, 1 - _DOUBT)
        # Rewritten with an equality for the sum: [Q 1; 1^T 0] [p; b] = [0; 1].
        system = np.zeros((len(r), n_classes + 1, n_classes + 1))
        loses = np.zeros((len(r), n_classes, n_classes))  # loses[c, s] = r_sc, won by s over c
        loses[:, first, second], loses[:, second, first] = r, 1 - r
        system[:, :-1, :-1] = -loses * loses.transpose(0, 2, 1)
        each = np.arange(n_classes)
        system[:, each, each] = np.square(loses).sum(axis=2)
        system[:, -1, :-1] = system[:, :-1, -1] = 1.0
        right = np.zeros((len(r), n_classes + 1, 1))
        right[:, -1] = 1.0
        p = np.maximum(np.linalg.solve(system, right)[:, :-1, 0], 0.0)
        out[start : start + step] = p / p.sum(axis=1, keepdims=True)
    return out


def couple_likelihood(positive: Array, book: NDArray[np.floating]) -> Array:
    """Probabilities of binary problems to those of the classes, by maximum likelihood.

    Parameters
    ----------
    positive : array of shape (n, L)
        The probability of the side +1 of each problem.
    book : array of shape (K, L)
        -1, 0 or +1: the side of each class in each problem.

    Returns
    -------
    p : array of shape (n, K)
        Classes that no problem tells apart share their probability equally.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.estimators.shared.coupling import couple_likelihood
    >>> p = np.array([0.5, 0.3, 0.2])
    >>> book = np.array([[1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    >>> couple_likelihood(p[None], book).round(8)
    array([[0.5, 0.3, 0.2]])
    """
    plus, minus = (book > 0).astype(np.float64), (book < 0).astype(np.float64)
    tells = plus.any(axis=0) & minus.any(axis=0)  # a problem of one side tells nothing
    plus, minus, positive = plus[:, tells], minus[:, tells], positive[:, tells]
    step = max(1, _BLOCK // max(book.shape))
    out = np.empty((len(positive), len(book)))
    for start in range(0, len(positive), step):
        r = np.clip(positive[start : start + step], _DOUBT, 1 - _DOUBT)
        out[start : start + step] = _climb(r, plus, minus)
    return out


def _climb(r: Array, plus: Array, minus: Array) -> Array:
    """The iteration of the module's text, for rows that have not come to rest."""
    n_classes = len(plus)
    p = np.full((len(r), n_classes), 1.0 / n_classes)
    moving = np.arange(len(r))
    for _ in range(_LIMIT):
        now, ratio = p[moving], r[moving]
        on_plus, on_minus = now @ plus, now @ minus
        gain = (ratio / on_plus) @ plus.T + ((1 - ratio) / on_minus) @ minus.T
        cost = (1.0 / (on_plus + on_minus)) @ (plus + minus).T
        # A class in no problem has nothing to move it.
        new = now * np.divide(gain, cost, out=np.ones_like(gain), where=cost > 0)
        new /= new.sum(axis=1, keepdims=True)
        p[moving] = new
        moving = moving[np.abs(new - now).max(axis=1) > _TOLERANCE]
        if not len(moving):
            break
    return p


def with_highest(p: Array, chosen: NDArray[np.intp]) -> Array:
    """Probabilities in which the chosen class of each row has changed places with the highest."""
    rows, top, p = np.arange(len(p)), p.argmax(axis=1), p.copy()
    p[rows, top], p[rows, chosen] = p[rows, chosen], p[rows, top]
    return p


def agreeing(p: Array, chosen: NDArray[np.intp]) -> Array:
    """The nearest probabilities (by squared differences) whose highest is that of the chosen class.

    Only rows that have a higher one are changed: the chosen class and those above it get their
    common mean, which may bring further classes above it; these join in.

    Parameters
    ----------
    p : array of shape (n, K)
    chosen : array of shape (n,)
        The number of a class for each row.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.estimators.shared.coupling import agreeing
    >>> agreeing(np.array([[0.5, 0.4, 0.1]]), np.array([1])).round(6)
    array([[0.45, 0.45, 0.1 ]])
    """
    away = np.flatnonzero(p.argmax(axis=1) != chosen)
    if not len(away):
        return p
    p, some, which = p.copy(), p[away], chosen[away][:, None]
    own = np.take_along_axis(some, which, axis=1)
    others = some.copy()
    np.put_along_axis(others, which, -np.inf, axis=1)
    falling = -np.sort(-others, axis=1)[:, :-1]
    # Mean of the chosen one and the m highest others, for m = 0, 1, ...: the first that reaches
    # the next one is the level.
    sums = np.concatenate([own, own + np.cumsum(falling, axis=1)], axis=1)
    means = sums / np.arange(1, sums.shape[1] + 1)
    following = np.concatenate([falling, np.full((len(away), 1), -np.inf)], axis=1)
    level = np.take_along_axis(means, (means >= following).argmax(axis=1)[:, None], axis=1)
    lowered = np.minimum(some, level)
    # A hair above the others, so that the first of equals is no other class.
    np.put_along_axis(lowered, which, level * (1 + 1e-12), axis=1)
    p[away] = lowered
    return p
