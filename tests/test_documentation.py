"""What the documentation shows runs: the README, and the files to copy for parts of one's own."""

import importlib
import json
import re
from pathlib import Path

import pytest
from benchmarks.suites.speed import CASES

from trueline import LinearRegressor
from trueline.checks import check_loss, check_penalty, check_solver, known_problems

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))


@pytest.fixture
def part(monkeypatch):
    """A class of a skeleton, imported as people would import it."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "skeletons"))
    return lambda module, name: getattr(importlib.import_module(module), name)


def test_the_readme_runs(capsys, tmp_path, monkeypatch):
    """Its blocks go on from each other, and what it shows of a certificate is what is printed."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert blocks
    names: dict = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    shown = re.search(r"^    (objective [\d.]+), proven within", README, re.MULTILINE)
    assert shown
    assert shown[1] in capsys.readouterr().out


def test_the_speed_in_the_readme_is_the_one_that_was_measured():
    case = re.search(r"--only (\w+)\"`\]\(benchmarks/README.md\)", README)[1]
    rows = json.loads((ROOT / "benchmarks" / "results" / "speed.json").read_text())["rows"][case]
    shown = re.search(r"takes ([\d.]+) s with\s+trueline, ([\d.]+) s with scikit-learn", README)
    assert float(shown[1]) == round(rows["trueline"]["seconds"], 2)
    assert float(shown[2]) == round(rows["scikit-learn"]["seconds"], 1)
    assert case in CASES


def test_files_named_in_the_readme_exist():
    named = re.findall(r"\]\(((?!http)[^)#]+)\)", README)
    assert named
    assert not [path for path in named if not (ROOT / path).exists()]


@pytest.mark.parametrize(
    ("phrase", "instead"),
    [
        ("that bend", "smooth, strictly convex"),
        ("made of straight lines", "piecewise linear"),
        ("mended", "fixed"),
        ("wild", "outlier"),
        ("absolute penalt", "L1 penalty"),
        ("penalty of absolute values", "L1 penalty"),
        ("without a word", "without a warning"),
        ("made of rounding", "at rounding level"),
    ],
)
def test_pages_use_the_words_of_the_field(phrase, instead):
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.rst")]
    found = [page.name for page in pages if phrase in " ".join(page.read_text().split())]
    assert not found, f"write {instead!r}"


def test_every_page_is_in_the_table_of_contents():
    generated = {"index", "sg_execution_times"}
    pages = {page.stem for page in (ROOT / "docs").glob("*.rst")} - generated
    index = (ROOT / "docs" / "index.rst").read_text()
    assert not [page for page in pages if f"\n   {page}\n" not in index]
    asked = {page for page in pages if f"<{page}>`" not in index}
    assert not asked, "each page has a row with the question that it answers"


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
    most = 130 if path.parent.name == "course" else 100  # a lesson has many steps
    assert len(path.read_text().splitlines()) < most


def test_the_project_has_few_words_of_its_own():
    """Each is explained; whoever adds one looks for a word of the field first."""
    lines = (ROOT / "docs" / "glossary.rst").read_text().splitlines()
    words = [line for line in lines if re.fullmatch(r"   \S.*", line)]
    assert 5 < len(words) <= 20
