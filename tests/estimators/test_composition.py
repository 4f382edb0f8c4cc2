"""Estimators are thin: composed of parts that stand side by side, not derived from each other."""

from sklearn.base import BaseEstimator

import trueline

#: From the class itself to the last base of this project.
LONGEST = 3


def chain(cls: type) -> list[str]:
    """The names of the project's classes on the longest way from a class to its bases."""
    ways = [chain(base) for base in cls.__bases__ if base.__module__.startswith("trueline")]
    return [cls.__name__, *max(ways, key=len, default=[])]


def test_no_chain_of_bases_is_longer_than_three_classes():
    public = [getattr(trueline, name) for name in trueline.__all__]
    estimators = [one for one in public if isinstance(one, type) and issubclass(one, BaseEstimator)]
    assert len(estimators) > 60
    assert [chain(one) for one in estimators if len(chain(one)) > LONGEST] == []
