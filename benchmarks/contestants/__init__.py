"""Who takes part: one small file per library.

A file defines CONTESTANTS. Each contestant maps tasks to functions from Data to Answer (in the
suites with ladders from Data and a tolerance); it imports its library inside the function,
so that nobody pays for the others and the first call shows the import. To add a library, add its
file here.
"""

from __future__ import annotations

from benchmarks.contestants import (
    abess,
    adelie,
    celer,
    clarabel,
    cyanure,
    fastcan,
    glmnet,
    glum,
    gpytorch,
    hardware,
    highs,
    himalaya,
    l0bnb,
    liblinear,
    libsvm,
    rehline,
    scipy_numpy,
    skglm,
    sklearn,
    sklearnex,
    snapml,
    statsmodels,
    trueline,
    zero,
)
from benchmarks.contestants.base import Contestant

__all__ = ["CONTESTANTS", "Contestant"]

CONTESTANTS: dict[str, Contestant] = {
    contestant.name: contestant
    for module in (
        trueline,
        sklearnex,
        hardware,
        sklearn,
        scipy_numpy,
        statsmodels,
        himalaya,
        celer,
        skglm,
        adelie,
        glmnet,
        fastcan,
        abess,
        l0bnb,
        highs,
        clarabel,
        rehline,
        gpytorch,
        liblinear,
        libsvm,
        snapml,
        glum,
        cyanure,
        zero,
    )
    for contestant in module.CONTESTANTS
}
