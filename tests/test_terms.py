"""Every word of a lecture is found, and its calls run."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import trueline
import trueline.plots
from trueline.cli import app
from trueline.terms import _plain, glossary, terms

PAGES = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def names():
    """What the calls of the glossary may use."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X @ [1.0, -2.0, 0.0, 0.5] + 0.3 * rng.normal(size=60)
    x = np.sort(rng.uniform(-2, 2, size=60))[:, None]
    signs = np.where(y + 0.8 * rng.normal(size=60) > 0, 1, -1)
    apart = np.abs(X[:, 0] + X[:, 1]) > 0.4
    given = {
        "np": np,
        "X": X,
        "y": y,
        "x": x,
        "signs": signs,
        "labels": np.array(["a", "b", "c"])[np.digitize(y, [-1.0, 1.0])],
        "counts": rng.poisson(np.exp(0.3 * X[:, 0])),
        "texts": ["good and cheap", "bad", "cheap and bad", "good"] * 15,
        "separable_X": X[apart],
        "separable_signs": np.sign(X[apart, 0] + X[apart, 1]).astype(int),
    }
    public = {name: getattr(trueline, name) for name in trueline.__all__ if name != "__version__"}
    pictures = {name: getattr(trueline.plots, name) for name in trueline.plots.__all__}
    return {**public, **pictures, **given}


@pytest.mark.parametrize("term", terms(), ids=lambda term: term.name)
@pytest.mark.parametrize("kind", ["call", "picture"])
def test_calls_and_pictures_run(term, kind, names):
    code = getattr(term, kind)
    if not code:
        return
    with warnings.catch_warnings():
        # Some calls show what does not converge, or what cannot be separated.
        warnings.simplefilter("ignore")
        exec(code, dict(names))


@pytest.mark.parametrize("term", terms(), ids=lambda term: term.name)
def test_pages_exist_and_related_words_are_known(term):
    assert not term.page or (PAGES / f"{term.page}.rst").exists()
    assert {glossary(other).name for other in term.see} == set(term.see)
    assert str(term).startswith(term.name)


def test_names_and_other_names_are_found_and_clash_with_no_other():
    owners: dict[str, set[str]] = {}
    for term in terms():
        for name in (term.name, *term.aliases):
            owners.setdefault(_plain(name), set()).add(term.name)
            assert glossary(name) is term
    assert {name: of for name, of in owners.items() if len(of) > 1} == {}


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("generalized inverse", "generalised inverse"),
        ("Regularization", "regularisation"),
        ("regularisations", "regularisation"),
        ("one hot coding", "one-hot coding"),
        ("Cross Validation", "cross-validation"),
        ("half-spaces", "halfspace"),
        ("support-vectors", "support vector"),
        ("Normal Equations", "normal equations"),
        ("karush kuhn tucker conditions", "KKT conditions"),
        ("bias", "intercept"),
        ("realisability", "realizability"),
    ],
)
def test_spellings(word, name):
    assert glossary(word).name == name


def test_a_wrong_word_gets_the_nearest_ones():
    with pytest.raises(ValueError, match="perceptron"):
        glossary("perceptorn")
    with pytest.raises(ValueError, match="not in the glossary"):
        glossary("xyzzy quux")


def test_the_command_prints_a_word_all_words_or_the_nearest_ones():
    run = CliRunner().invoke
    assert run(app, ["help", "weight", "decay"]).output == f"{glossary('weight decay')}\n"
    assert run(app, ["help"]).output.splitlines() == [term.name for term in terms()]
    wrong = run(app, ["help", "perceptorn"])
    assert wrong.exit_code == 2
    assert "perceptron" in wrong.output
