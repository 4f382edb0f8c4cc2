"""For every test and every example: pictures are closed after it, and pages write elsewhere.

Slow tests are not even collected in the fast run: thousands of cases take their time to be named.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


def pytest_pycollect_makeitem(
    collector: pytest.Module, name: str, obj: object
) -> list[pytest.Item] | None:
    """No items of slow tests where none of them would run."""
    if collector.config.option.markexpr != "not slow" or not name.startswith("test"):
        return None
    return [] if any(mark.name == "slow" for mark in getattr(obj, "pytestmark", [])) else None


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
