"""What the project says about itself in several places must agree."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RUNTIME_EXTRAS = ["formula", "plot", "tables", "test"]


def requirements(text):
    """Name -> version, for lines such as ``numpy>=1.26.0`` or ``numpy==1.26.0``."""
    return dict(re.findall(r"^([\w-]+)[=>]=([\w.]+)", text, flags=re.MULTILINE))


def test_lowest_pins_are_the_declared_lower_bounds():
    extras = PROJECT["optional-dependencies"]
    declared = PROJECT["dependencies"] + [r for name in RUNTIME_EXTRAS for r in extras[name]]
    bounds = requirements("\n".join(declared))
    pins = requirements((ROOT / "requirements" / "lowest.txt").read_text())
    assert {name: pins.get(name) for name in bounds} == bounds


@pytest.mark.parametrize("command", ["demo", "test"])
def test_readme_commands_exist(command):
    readme = (ROOT / "README.md").read_text()
    block = re.search(rf"<!-- {command} command -->\n```bash\n(.*?)\n```", readme, flags=re.DOTALL)
    assert block is not None
    script = ROOT / block.group(1)
    assert script.is_file()
    assert script.stat().st_mode & 0o100


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_between_pages_lead_somewhere(page):
    text = (ROOT / page).read_text()
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert [target for target in targets if not (ROOT / target).exists()] == []
