"""What the documentation shows runs: the README, and the files to copy for parts of one's own."""

import importlib
import re
from pathlib import Path

import pytest

from trueline import LinearRegressor
from trueline.checks import check_loss, check_penalty, check_solver, known_problems

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture
def part(monkeypatch):
    """A class of a skeleton, imported as people would import it."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "skeletons"))
    return lambda module, name: getattr(importlib.import_module(module), name)


def test_the_readme_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})


def test_files_named_in_the_readme_exist():
    named = re.findall(r"\]\(((?!http)[^)#]+)\)", README)
    assert named
    assert not [path for path in named if not (ROOT / path).exists()]


def test_every_page_is_in_the_table_of_contents():
    generated = {"index", "sg_execution_times"}
    pages = {page.stem for page in (ROOT / "docs").glob("*.rst")} - generated
    index = (ROOT / "docs" / "index.rst").read_text()
    assert not [page for page in pages if f"\n   {page}\n" not in index]


def test_the_skeleton_of_a_loss_obeys_the_laws(part):
    assert "value is convex" in check_loss(part("my_loss", "LogCosh")())


def test_the_skeleton_of_a_penalty_obeys_the_laws(part):
    assert "prox is optimal" in check_penalty(part("my_penalty", "HuberPenalty")())


def test_the_skeleton_of_a_solver_obeys_the_laws(part):
    problems = known_problems()[::4]
    assert "certificate is true" in check_solver(part("my_solver", "Newton")(), problems)


def test_the_skeletons_fit_together(part):
    X = [[0.0, 1.0], [1.0, 0.5], [2.0, 3.0], [3.0, 2.0], [4.0, 7.0], [5.0, 1.0]]
    y = [0.1, 1.2, 1.9, 3.2, 30.0, 5.1]
    loss, penalty = part("my_loss", "LogCosh")(), part("my_penalty", "HuberPenalty")(0.5)
    model = LinearRegressor(loss, penalty, tol=1e-8).fit(X, y)
    assert model.certificate_.kind == "duality"
    assert model.verify(X, y)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_short(path):
    assert path.name.startswith("plot_"), "only these are run by the gallery"
    assert len(path.read_text().splitlines()) < 100
