"""Support vector machines, linear and with kernels.

``linear_svc`` and ``linear_svr`` state planned problems; ``svc``, ``svr`` and ``one_class`` run
sequential minimal optimisation on kernel values. In: X and labels or targets. Out: a margin.
"""
