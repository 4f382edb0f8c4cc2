"""The page of differences lists every exception: signatures and defaults are compared with
scikit-learn's, one by one."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "differences.rst").read_text()


@pytest.fixture
def docs(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module


def test_every_difference_has_a_reason(docs):
    without = [one for one in docs("signatures").found() if not one.reason]
    assert without == []


def test_every_reason_has_a_difference(docs):
    signatures = docs("signatures")
    assert set(signatures.REASONS) == {one.parameter for one in signatures.found()}


def test_what_exists_in_both_has_the_same_default_except_for_solvers(docs):
    both = [one for one in docs("signatures").found() if "none" not in (one.here, one.there)]
    assert {one.parameter for one in both} == {"solver"}
    # "auto" plans; every name that scikit-learn has is accepted.
    assert {one.here for one in both} == {"'auto'"}


def test_no_difference_moves_arguments_that_are_given_by_place(docs):
    assert [one for one in docs("signatures").found() if "argument" in one.there] == []


def test_all_namesakes_are_compared(docs):
    names = docs("signatures").namesakes()
    assert {"Ridge", "LinearSVC", "SVC", "GaussianProcessRegressor", "lasso_path"} <= set(names)
    assert len(names) >= 39


def test_the_page_shows_the_table(docs):
    assert ".. include:: generated/signatures.txt" in PAGE
    text = docs("generate").signatures()
    for one in docs("signatures").found():
        assert f"``{one.parameter}``" in text
        assert f"``{one.owner}``" in text
