"""Newton's method ends where rounding leaves nothing to gain, whatever tolerance was asked for."""

import numpy as np

from trueline import GammaRegressor


def test_one_row_that_the_intercept_fits_exactly():
    """The null model is the optimum, so any tolerance relative to it is about zero."""
    X = np.array([[2.59916268], [2.5512659], [3.05017368], [2.83534626]])
    weight = np.array([0.0, 1.0, 0.0, 0.0])
    for target in 0.8483641488873966 * (1 + 2.0**-40 * np.arange(40)):
        y = np.array([1.5, target, 1.3, 1.2])
        model = GammaRegressor(alpha=1e-6, max_iter=10_000, tol=1e-10).fit(X, y, weight)
        assert model.n_iter_ < 100
        np.testing.assert_allclose(model.predict(X), target, rtol=1e-12)
        assert model.verify(X, y, weight)
