"""Results as JSON, one file per suite, written after every measurement."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.machine import facts

__all__ = ["RESULTS", "Store"]

RESULTS = Path(__file__).resolve().parent / "results"


class Store:
    """The rows of a suite: {group: {name: row}}, and where they were measured."""

    def __init__(self, suite: str, folder: Path | None = None) -> None:
        self.path = (folder or RESULTS) / f"{suite}.json"
        self.content: dict[str, Any] = {"machine": {}, "rows": {}}
        if self.path.exists():
            self.content = json.loads(self.path.read_text())

    @property
    def rows(self) -> dict[str, dict[str, dict[str, Any]]]:
        """All rows."""
        return self.content["rows"]

    @property
    def machine(self) -> dict[str, str]:
        """Facts of the machine at the last measurement."""
        return self.content["machine"]

    def get(self, group: str, name: str) -> dict[str, Any] | None:
        """One row, if it was measured."""
        return self.rows.get(group, {}).get(name)

    def put(self, group: str, name: str, row: dict[str, Any]) -> None:
        """Keep a row, dated."""
        row = {**row, "date": date.today().isoformat()}
        self.rows.setdefault(group, {})[name] = row
        self.content["machine"] = facts()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.content, indent=1, allow_nan=True) + "\n")
