"""The checker stands alone: NumPy, scipy.sparse and the standard library are all that it uses."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import trueline.check

FOLDER = Path(trueline.check.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))
ALLOWED = {"numpy", "numpy.typing", "scipy.sparse", "trueline.check"}


def imported(path):
    """Every module that a file imports, anywhere in it; those named by a text as well."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            yield node.module
        elif isinstance(node, ast.Call) and "import" in ast.unparse(node.func):
            yield ast.unparse(node.args[0])


def is_allowed(module):
    if module == "f'trueline.check.theorems.{THEOREMS[kind]}'":  # the table of theorems
        return True
    if module in ALLOWED or module.startswith("trueline.check."):
        return True
    return module.split(".")[0] in sys.stdlib_module_names


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_import_numpy_scipy_sparse_and_each_other(path):
    assert [module for module in imported(path) if not is_allowed(module)] == []


@pytest.mark.parametrize(
    "text", ["import sklearn.svm", "from trueline.losses import Loss", "import_module('numba')"]
)
def test_other_imports_are_found(text, tmp_path):
    path = tmp_path / "file.py"
    path.write_text(text)
    assert [module for module in imported(path) if not is_allowed(module)]


def test_every_theorem_has_its_file():
    names = {path.stem for path in FILES}
    assert set(trueline.check.THEOREMS.values()) <= names


def test_importing_the_checker_imports_nothing_else():
    code = """
import sys, trueline.check
others = {name.split(".")[0] for name in sys.modules} & {"sklearn", "numba", "pandas", "joblib"}
own = {name for name in sys.modules if name.startswith("trueline.")}
print(sorted(others), sorted(name for name in own if not name.startswith("trueline.check")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] []\n"
