"""``python -m trueline.check proof.npz``: what needs NumPy, SciPy and this package alone."""

from __future__ import annotations

import argparse
import sys
from typing import TextIO

from trueline.check import ProofFileError, Verdict, read_proof, verify

_CODES = {Verdict.PROVEN: 0, Verdict.CONDITIONAL: 3, Verdict.NOT_PROVEN: 1}
_EPILOG = "Exit code: 0 proven, 3 proven under a condition, 1 not proven, 2 a file cannot be read."


def _say(stream: TextIO, text: str) -> None:
    """Write what may hold letters that the terminal does not have."""
    code = stream.encoding or "utf-8"
    stream.write(text.encode(code, "backslashreplace").decode(code))


def main(words: list[str] | None = None) -> int:
    """Print what each file proves; the exit code is that of the worst of them."""
    parser = argparse.ArgumentParser("python -m trueline.check", epilog=_EPILOG)
    parser.add_argument("files", nargs="+", metavar="proof.npz", help="made by write_proof")
    parser.add_argument("--full", action="store_true", help="repeat searches of any length")
    options = parser.parse_args(words)
    code = 0
    for path in options.files:
        try:
            outcome = verify(*read_proof(path), effort="full" if options.full else "normal")
            found = _CODES[outcome.verdict]
            _say(sys.stdout, f"{path}\n{outcome}\n\n")
        except ProofFileError as error:
            _say(sys.stderr, f"{error}\n")
            found = 2
        code = max(code, found, key=(0, 3, 1, 2).index)
    return code


if __name__ == "__main__":
    sys.exit(main())
