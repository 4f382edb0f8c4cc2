"""A proof that is worked out when somebody looks: it costs as much as predicting all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.support_vectors import SupportVectorCertificate

__all__ = ["PendingProof"]


@dataclass(frozen=True)
class PendingProof:
    """The training data and the statement, until the data have been looked at once more."""

    X: Any
    y: Any
    weights: NDArray[np.float64]
    claim: SupportVectorCertificate

    def certificate(self) -> SupportVectorCertificate:
        """The statement with its numbers."""
        from trueline.certificates.support_vectors_proof import certify_support_vectors

        return certify_support_vectors(self.claim, self.X, self.y, self.weights)
