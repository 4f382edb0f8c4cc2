"""One contestant on one case of the suite on kernels, in a process of its own.

``python -m benchmarks.kernels.worker CASE NAME SCALE CACHE LIMIT [FOLDER [BELOW]]``.
"""

from __future__ import annotations

import sys
from functools import partial

from benchmarks.judged import work
from benchmarks.kernels.prepare import SUITE

__all__ = ["main"]

main = partial(work, SUITE)

if __name__ == "__main__":
    main(*sys.argv[1:])
