"""Of a grid of cases the fast run takes few that cover it; the others are marked as slow."""

from itertools import combinations, product
from pathlib import Path
from types import SimpleNamespace

import pytest

AXES = {"loss": "abcde", "penalty": "fgh", "shape": "ij"}


class Case:
    """As much of a pytest item as is looked at."""

    function = "the same of all cases"

    def __init__(self, values, strength):
        self.values, self.is_slow = values, False
        self.callspec = SimpleNamespace(params=dict(zip(AXES, values)))
        self.get_closest_marker = lambda name: getattr(pytest.mark, name)(strength).mark

    def add_marker(self, mark):
        self.is_slow = mark.name == "slow"


@pytest.mark.parametrize("strength", [1, 2, 3])
def test_any_values_of_that_many_axes_meet_in_the_fast_run(pytestconfig, strength):
    plugin = pytestconfig.pluginmanager.getplugin(str(Path(__file__).parent.parent / "conftest.py"))
    cases = [Case(values, strength) for values in product(*AXES.values())]
    plugin.pytest_collection_modifyitems(cases)
    fast = [set(case.values) for case in cases if not case.is_slow]
    for axes in combinations(AXES.values(), strength):
        for together in product(*axes):
            assert any(values.issuperset(together) for values in fast)
    least = {1: 5, 2: 15, 3: 30}[strength]  # the product of the longest axes
    assert len(fast) <= 1.2 * least


@pytest.mark.parametrize(("chosen", "items"), [("not slow", []), ("slow", None), ("", None)])
def test_slow_tests_are_not_collected_where_none_would_run(pytestconfig, chosen, items):
    plugin = pytestconfig.pluginmanager.getplugin(str(Path(__file__).parent.parent / "conftest.py"))
    collector = SimpleNamespace(config=SimpleNamespace(option=SimpleNamespace(markexpr=chosen)))
    slow = SimpleNamespace(pytestmark=[pytest.mark.slow.mark])
    assert plugin.pytest_pycollect_makeitem(collector, "test_of_an_hour", slow) == items
    assert plugin.pytest_pycollect_makeitem(collector, "test_quick", SimpleNamespace()) is None
