"""For every test and every example: pictures are closed after it, and pages write elsewhere.

Slow tests are not even collected in the fast run: thousands of cases take their time to be named.
Of a grid of cases the fast run takes a few that cover it, and the others are slow::

    @pytest.mark.grid(2)  # every value of an axis meets every value of every other axis
    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("penalty", PENALTIES)
    @pytest.mark.parametrize("shape", SHAPES)
    def test_something(loss, penalty, shape): ...

Property tests try the same examples in every run, so that a change is judged by what it changed.
``--hypothesis-profile=search`` looks for others. Kernels are compiled at their first call.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator
from itertools import combinations, groupby

import pytest
from hypothesis import settings

# Answers of interpreted and compiled kernels differ in their last digits.
os.environ.setdefault("TRUELINE_COMPILE", "always")

settings.register_profile("same", derandomize=True)
settings.register_profile("search", print_blob=True)
settings.load_profile("same")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect thousands of items, which stay, without searches for garbage among them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_pycollect_makeitem(
    collector: pytest.Module, name: str, obj: object
) -> list[pytest.Item] | None:
    """No items of slow tests where none of them would run."""
    if collector.config.option.markexpr != "not slow" or not name.startswith("test"):
        return None
    return [] if any(mark.name == "slow" for mark in getattr(obj, "pytestmark", [])) else None


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases of a grid slow that the fast run can do without."""
    for function, group in groupby(items, key=lambda item: getattr(item, "function", None)):
        cases = list(group)
        mark = cases[0].get_closest_marker("grid") if function else None
        if mark:
            kept = covering([axes_of(case) for case in cases], *mark.args)
            for i in set(range(len(cases))) - kept:
                cases[i].add_marker(pytest.mark.slow)


def axes_of(case: pytest.Item) -> dict[str, int]:
    """What tells the values of each parameter apart: those of one axis are the same objects."""
    return {name: id(value) for name, value in case.callspec.params.items()}


def covering(cases: list[dict[str, int]], strength: int) -> set[int]:
    """Few cases in which any ``strength`` values of different axes occur together.

    The greedy choice: the first of the cases that bring the most combinations not seen so far.
    """
    brought = [set(combinations(sorted(case.items()), min(strength, len(case)))) for case in cases]
    missing = set().union(*brought)
    kept: set[int] = set()
    while missing:
        best = max(range(len(cases)), key=lambda i: len(brought[i] & missing))
        kept.add(best)
        missing -= brought[best]
    return kept


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")


@pytest.fixture(autouse=True)
def _pages_write_elsewhere(request: pytest.FixtureRequest) -> None:
    """Examples of pages run in a folder of their own: some of them write files."""
    if isinstance(request.node, pytest.DoctestItem) and request.node.path.suffix == ".rst":
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
