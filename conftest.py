"""For every test and every example: pictures are closed after it, and pages write elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


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
