"""Columns collected from compressed rows are the columns of the matrix."""

import numpy as np
import pytest
import scipy.sparse as sp

from trueline.design import sparse_columns
from trueline.design.sparse_slices import ColumnsOfRows


@pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "cut for threads"])
def test_columns_in_any_order_as_often_as_wanted(is_cut, monkeypatch):
    if is_cut:
        monkeypatch.setattr(sparse_columns.cuts, "__defaults__", (10,))
    random = np.random.default_rng(0)
    X = sp.random_array((80, 50), density=0.1, rng=random, format="csr")
    X.data[::7] = 0.0  # entries that are stored and zero stay
    columns = ColumnsOfRows(X)
    for chosen in ([], [3], [40, 2, 17], *([random.permutation(50)[:20]] * 10), np.arange(50)):
        some = columns.take(np.asarray(chosen, dtype=np.intp))
        expected = X.tocsc()[:, np.asarray(chosen, dtype=np.intp)]
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(some, part), getattr(expected, part))
