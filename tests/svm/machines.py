"""Small data of every machine."""

import numpy as np

from trueline import SVC, SVR, NuSVC, NuSVR, OneClassSVM


def labelled(n=60, d=3, k=2, seed=0):
    g = np.random.default_rng(seed)
    y = g.integers(k, size=n)
    y[:k] = np.arange(k)
    X = g.standard_normal((n, d)) + 1.2 * y[:, None] * (np.arange(d) % 2 * 2 - 1)
    return X, y


def smooth(n=60, d=2, seed=0):
    g = np.random.default_rng(seed)
    X = g.standard_normal((n, d))
    return X, np.sin(2 * X[:, 0]) + 0.3 * g.standard_normal(n)


MACHINES = {
    "SVC": lambda **kw: SVC(**kw),
    "NuSVC": lambda **kw: NuSVC(nu=0.5, **kw),
    "SVR": lambda **kw: SVR(**kw),
    "NuSVR": lambda **kw: NuSVR(nu=0.4, **kw),
    "OneClassSVM": lambda **kw: OneClassSVM(nu=0.3, **kw),
}


def data_for(name, n=60, k=2, seed=0):
    return labelled(n, 3, k, seed) if "SVC" in name else smooth(n, 2, seed)
