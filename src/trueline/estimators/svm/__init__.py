"""Support vector machines, linear and with kernels.

``linear`` states planned problems; ``svc`` and ``svr`` (with the machine of one class) run
sequential minimal optimisation on kernel values, and ``multipliers`` judges what it returns. In: X
and labels or targets. Out: a margin.
"""
