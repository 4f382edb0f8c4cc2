"""No two files of the package need each other: what a file imports can be read before it."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import trueline

ROOT = Path(trueline.__file__).parent.parent


def _modules():
    """Every module of the package by its dotted name."""
    for path in ROOT.glob("trueline/**/*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        yield name.removesuffix(".__init__"), path


def _imported(path, known):
    """The modules that a file imports as it is loaded; functions may import what they like."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_files_do_not_import_each_other_in_circles():
    known = dict(_modules())
    assert len(known) > 300
    graph = {name: set(_imported(path, known)) & known.keys() for name, path in known.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError("circle of imports: " + " -> ".join(error.args[1])) from None
