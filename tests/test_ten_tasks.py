"""The page "Ten tasks": what it shows is run, task by task, in a folder of its own."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trueline.cli import app

matplotlib = pytest.importorskip("matplotlib")

PAGE = (Path(__file__).parent.parent / "docs" / "ten_tasks.rst").read_text()
HEADING = re.compile(r"^(.+)\n-{3,}\n", re.MULTILINE)
CONSOLE = re.compile(r"\.\. code-block:: console\n\n((?:    .*\n|\n)+)")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def sections():
    """Title and text of each section of the page."""
    parts = HEADING.split(PAGE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


SECTIONS = sections()
TASKS = [title for title in SECTIONS if title[0].isdigit()]


def run_python(text: str, names: dict) -> None:
    """Run the examples of a text and compare what they print, as doctest does."""
    test = doctest.DocTestParser().get_doctest(text, names, "ten_tasks", None, 0)
    runner = doctest.DocTestRunner(optionflags=FLAGS | doctest.REPORT_ONLY_FIRST_FAILURE)
    report: list[str] = []
    runner.run(test, out=report.append, clear_globs=False)
    assert not runner.failures, "".join(report)
    names.update(test.globs)


def run_console(block: str) -> None:
    """Run each command of a block; what is shown must be in its output, in this order."""
    for part in re.split(r"^\$ trueline ", re.sub("^    ", "", block, flags=re.M), flags=re.M)[1:]:
        command, _, shown = part.partition("\n")
        terminal = {"COLUMNS": "100", "NO_COLOR": "1"}
        result = CliRunner().invoke(app, shlex.split(command), env=terminal)
        assert result.exit_code == 0, f"{command}\n{result.output}\n{result.exception!r}"
        pieces = [piece.strip() for piece in shown.split("...") if piece.strip()]
        place = 0
        for piece in pieces:
            found = result.output.find(piece, place)
            assert found >= 0, f"{command} does not print {piece!r}:\n{result.output}"
            place = found + len(piece)


def run(text: str, names: dict) -> None:
    """Run Python and console blocks in the order of the page."""
    place = 0
    for match in CONSOLE.finditer(text):
        run_python(text[place : match.start()], names)
        run_console(match[1])
        place = match.end()
    run_python(text[place:], names)


def test_the_page_has_ten_tasks():
    assert [int(title.partition(".")[0]) for title in TASKS] == list(range(1, 11))


@pytest.mark.parametrize("title", TASKS)
def test_a_task_runs_as_the_page_shows_it(title, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    run(SECTIONS["The data"], names)
    run(SECTIONS[title], names)


def test_commands_leave_the_files_that_the_page_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(SECTIONS["The data"], {})
    run(SECTIONS[TASKS[5]], {})
    assert (tmp_path / "predicted.csv").read_text().startswith("age,")
    assert "target_predicted" in (tmp_path / "predicted.csv").read_text().splitlines()[0]
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"diabetes.csv", "wine.csv", "progress.trueline", "predicted.csv"}
