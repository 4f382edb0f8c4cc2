"""What the project says about itself in several places must agree."""

import json
import os
import re
import subprocess
import sys
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


# Fits everything with compilation forbidden; what is interpreted had no machine code in the wheel.
WITHOUT_COMPILER = """
import json, warnings
import trueline
from trueline.cli.warming import small_fits
from trueline.numerics import jit

interpreted, fits = set(), 0
def record(kernel, args, original=jit.LazyKernel._interpret):
    interpreted.add(kernel.py_func.__qualname__)
    return original(kernel, args)
jit.LazyKernel._interpret = record
warnings.simplefilter("ignore")
for model, X, y, _ in small_fits():
    try:
        model.fit(X, y)
        fits += 1
    except Exception:
        pass
print(json.dumps([trueline.__file__, fits, sorted(interpreted)]))
"""


@pytest.mark.slow
def test_a_wheel_brings_machine_code_for_every_kind_of_fit(tmp_path):
    pytest.importorskip("hatchling")
    site = tmp_path / "site"
    environment = os.environ | {
        "TRUELINE_SHIP_KERNELS": "1",
        "TRUELINE_COMPILE": "never",
        "TRUELINE_CACHE_DIR": str(tmp_path / "empty"),
        "PYTHONPATH": str(site),
    }
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(ROOT)]
    subprocess.run([*pip, *build], env=environment, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert "none-any" not in wheel.name  # for this kind of machine only
    subprocess.run([*pip, "install", "--no-deps", "--target", str(site), str(wheel)], check=True)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_COMPILER],
        env=environment,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    file, fits, interpreted = json.loads(done.stdout)
    assert Path(file).is_relative_to(site)
    assert fits > 100
    assert interpreted == []
