"""The map is true: the layout in CONTRIBUTING, and what the folders say about their files."""

import ast
import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "trueline"
FOLDERS = sorted(path.parent for path in PACKAGE.rglob("__init__.py"))


def floors_told():
    """The modules of every row of the table in CONTRIBUTING, from the top floor down."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = text[text.index("| floor |") :].split("\n\n")[0]
    return [re.findall(r"`(\w+)`", row.split("|")[2]) for row in table.splitlines()[2:]]


def floors_checked():
    """The floor of every module in the contract that the imports keep, counted from the top."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    layers = tools["importlinter"]["contracts"][0]["layers"]
    return {name: k for k, layer in enumerate(layers) for name in re.findall(r"\w+", layer)}


def test_the_layout_names_every_module_of_the_package():
    hidden = {"__init__", "__main__", "_version", "py", "__pycache__"}
    there = {path.stem for path in PACKAGE.iterdir()} - hidden
    told = [name for row in floors_told() for name in row]
    assert sorted(told) == sorted(there)


def test_the_layout_tells_the_floors_that_imports_keep():
    checked = floors_checked()
    rows = [{checked[name] for name in row} for row in floors_told()]
    assert all(max(above) <= min(below) for above, below in pairwise(rows))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_folder_says_what_lives_in_it(folder):
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    assert text
    assert len(text.split()) >= 20
    # Rows of its table name files that are there.
    for name in re.findall(r"^``([\w.]+)`` ", text, flags=re.MULTILINE):
        path = folder / name.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").exists(), name
