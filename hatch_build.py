"""Wheels with machine code: ``TRUELINE_SHIP_KERNELS=1 python -m build --wheel --no-isolation``.

The environment that builds must be the one to run in: the code fits one version of Python, NumPy,
Numba and llvmlite. Without the variable a wheel is pure Python, and nobody waits for a compiler.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelHook(BuildHookInterface):
    """Compiles the kernels into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the folder of machine code to a standard wheel."""
        if version == "editable" or os.environ.get("TRUELINE_SHIP_KERNELS", "0") in ("", "0"):
            return
        self._kept = tempfile.TemporaryDirectory()  # as long as the wheel is being built
        folder = Path(self._kept.name)
        environment = os.environ | {"PYTHONPATH": str(Path(self.root) / "src")}
        command = [sys.executable, "-m", "trueline", "warm", "--into", str(folder)]
        subprocess.run(command, check=True, env=environment)
        build_data["force_include"][str(folder)] = "trueline/machine_code"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
