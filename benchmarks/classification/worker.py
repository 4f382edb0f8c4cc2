"""One contestant on one case of the suite on classification, in a process of its own.

``python -m benchmarks.classification.worker CASE NAME SCALE CACHE LIMIT [FOLDER [BELOW]]``.
"""

from __future__ import annotations

import sys
from functools import partial

from benchmarks.classification.prepare import SUITE
from benchmarks.judged import work

__all__ = ["main"]

main = partial(work, SUITE)

if __name__ == "__main__":
    main(*sys.argv[1:])
