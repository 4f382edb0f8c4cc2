"""What a Gaussian process says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import _num_samples

from trueline.certificates.kernel import KernelCertificate
from trueline.estimators.kernel_plan import data_text, matrix_text
from trueline.wording import Readable, counted

__all__ = ["ProcessExplanation", "planned_process"]


def planned_process(kernel: Any, X: Any, y: Any, optimizer: Any, restarts: int) -> str:
    """What a fit would do with data, in words."""
    how = f"{counted(kernel.n_dims, 'parameter')} by maximum likelihood, "
    how += f"{1 + restarts} searches" if restarts else "one search"
    if optimizer is None or kernel.n_dims == 0:
        how = "parameters as they are"
    return (
        f"kernel     {kernel}\n"
        f"data       {data_text(X, y)}\n"
        f"solver     {how}; several matrices of {matrix_text(_num_samples(X))} each"
    )


@dataclass(frozen=True, repr=False)
class ProcessExplanation(Readable):
    """Prints as text: kernel, search, proof."""

    kernel: str
    rows: int
    facts: Mapping[str, Any]
    certificate: KernelCertificate

    def __str__(self) -> str:
        facts = self.facts
        how = "by compiled loops over pairs" if facts["by_formula"] else "by the kernel itself"
        lines = [
            f"kernel     {self.kernel}",
            f"matrix     {self.rows:,} x {self.rows:,}, {how}",
        ]
        lines += [f"{'' if i else 'search':<11}{stage}" for i, stage in enumerate(facts["stages"])]
        counts = counted(facts["evaluations"], "evaluation")
        lines.append(
            f"happened   {counts} with all rows, {facts['seconds']:.3g} s: log marginal "
            f"likelihood {facts['likelihood']:.10g}"
        )
        lines.append(f"proof      {self.certificate}")
        lines.append(f"           {self.certificate.statement}")
        return "\n".join(lines)
