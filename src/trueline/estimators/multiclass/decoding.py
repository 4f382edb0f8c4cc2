r"""From the scores of a code book's columns to scores of the classes.

The score of class c is minus a distance between the row's scores f_1, ..., f_L and the codeword
m_c of the class (E. L. Allwein, R. E. Schapire, Y. Singer, J. Machine Learning Research 1 (2000)
113-141, section 3):

=============  =====================================================================
decoding       distance
=============  =====================================================================
euclidean      sum_l (m_cl - f_l)^2
hamming        sum_l (1 - sign(m_cl f_l)) / 2: bits that differ; zeros count half
hinge          sum_l max(0, 1 - m_cl f_l)
squared        sum_l (1 - m_cl f_l)^2
logistic       sum_l log(1 + exp(-2 m_cl f_l))
exponential    sum_l exp(-m_cl f_l)
linear         sum_l (- m_cl f_l)
=============  =====================================================================

The loss that the parts were fitted with is the natural choice among the last five: theorem 1 of
that paper bounds the training error by the parts' losses over the distance of the code.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["DECODINGS", "class_scores"]

Array = NDArray[np.float64]

_LOSSES: dict[str, Callable[[Array], Array]] = {
    "hamming": lambda margin: 0.5 * (1.0 - np.sign(margin)),
    "hinge": lambda margin: np.maximum(0.0, 1.0 - margin),
    "squared": lambda margin: np.square(1.0 - margin),
    "logistic": lambda margin: np.logaddexp(0.0, -2.0 * margin),
    # Beyond exp(700) a double is infinite; the order of the classes is decided long before.
    "exponential": lambda margin: np.exp(np.minimum(-margin, 700.0)),
    "linear": lambda margin: -margin,
}
#: The names of the distances.
DECODINGS = ("euclidean", *_LOSSES)


def class_scores(scores: Array, book: Array, decoding: str) -> Array:
    """Scores of shape (n, K) from the parts' scores of shape (n, L).

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.estimators.multiclass.decoding import class_scores
    >>> book = np.array([[1.0, 1.0, 1.0], [-1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]])
    >>> class_scores(np.array([[-2.0, 0.5, -0.1]]), book, "hamming")
    array([[-2., -2., -0.]])
    """
    if decoding == "euclidean":
        squares = np.square(scores).sum(axis=1, keepdims=True)
        lengths = np.square(book).sum(axis=1)
        return 2 * (scores @ book.T) - lengths - squares
    loss = _LOSSES[decoding]
    # A class stands at +1, at -1 or at 0 of a column: three losses per score, picked by products.
    out = -(loss(scores) @ (book > 0).T.astype(np.float64))
    out -= loss(-scores) @ (book < 0).T.astype(np.float64)
    return out - float(loss(np.zeros(1))[0]) * (book == 0).sum(axis=1)
