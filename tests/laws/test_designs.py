"""Every way to store a matrix obeys the laws of designs."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from trueline.checks import DESIGN_LAWS
from trueline.checks.designs import DesignPoints
from trueline.design import (
    AugmentedDesign,
    DenseDesign,
    SparseDesign,
    StandardizedDesign,
    as_design,
)
from trueline.design.sparse import LARGE as LARGE_SPARSE
from trueline.numerics.gram import _tiles_run_here

rng = np.random.default_rng(5)
DENSE = rng.standard_normal((23, 6)) * 10.0 ** rng.integers(-3, 4, 6)
HOLES = DENSE * (rng.random((23, 6)) < 0.3)
HOLES[4] = HOLES[11] = 0.0  # empty rows
HOLES[:, 2] = 0.0  # an empty column


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def long_indices(X):
    X = sp.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def in_pieces():
    """A CSR array whose entries are stored in two pieces each, columns out of order."""
    X = sp.csr_array(HOLES)
    data = np.repeat(0.5 * X.data, 2)
    return sp.csr_array((data, np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)


def offset_and_scale(X, offset):
    scale = np.linspace(0.5, 2.0, X.shape[1]) * np.where(np.arange(X.shape[1]) % 2, 1, -1)
    design = StandardizedDesign(as_design(X), offset, scale)
    plain = X.toarray() if sp.issparse(X) else X
    return design, (np.abs(plain) + np.abs(offset)) * np.abs(scale)


DESIGNS = {
    "rows contiguous": (as_design(DENSE), None),
    "columns contiguous": (as_design(np.asfortranarray(DENSE)), None),
    "neither contiguous": (as_design(np.repeat(DENSE, 2, axis=0)[::2, ::-1]), None),
    "read-only": (as_design(read_only(DENSE)), None),
    "single precision": (as_design(DENSE.astype(np.float32)), None),
    "single precision by columns": (as_design(np.asfortranarray(DENSE, dtype=np.float32)), None),
    "integers": (as_design(np.round(DENSE).astype(int)), None),
    "one row": (as_design(DENSE[:1]), None),
    "one column": (as_design(DENSE[:, :1]), None),
    "wide": (as_design(DENSE.T.copy()), None),
    "CSR array": (as_design(sp.csr_array(HOLES)), None),
    "CSC array": (as_design(sp.csc_array(HOLES)), None),
    "COO array": (as_design(sp.coo_array(HOLES)), None),
    "CSR matrix": (as_design(sp.csr_matrix(HOLES)), None),
    "CSC matrix": (as_design(sp.csc_matrix(HOLES)), None),
    "CSR, 64-bit indices": (as_design(long_indices(HOLES)), None),
    "CSR, single precision": (as_design(sp.csr_array(HOLES.astype(np.float32))), None),
    "CSR, integers": (as_design(sp.csr_array(np.round(HOLES).astype(int))), None),
    "CSR in pieces": (as_design(in_pieces()), None),
    "CSR, all zero": (as_design(sp.csr_array((5, 3))), None),
    "with a constant": (AugmentedDesign(as_design(DENSE), 2.5), None),
    "sparse with a constant": (AugmentedDesign(as_design(sp.csr_array(HOLES)), -1.0), None),
    "standardised": offset_and_scale(DENSE, DENSE.mean(axis=0)),
    "standardised sparse": offset_and_scale(sp.csr_array(HOLES), HOLES.mean(axis=0)),
    "standardised far away": offset_and_scale(DENSE + 1e6, np.full(6, 1e6)),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_laws(name):
    design, magnitude = DESIGNS[name]
    assert DESIGN_LAWS.check(design, DesignPoints.of(design, magnitude))


@pytest.mark.skipif(not _tiles_run_here(), reason="no compiled vectors here")
@pytest.mark.parametrize("name", [n for n, (design, _) in DESIGNS.items() if not design.is_sparse])
def test_sums_by_tiles_obey_the_laws(name, monkeypatch):
    monkeypatch.setattr("trueline.numerics.gram._tiles_pay", lambda *_: True)
    design, magnitude = DESIGNS[name]
    for law in ("second moments are sums over rows", "second moments state their rounding"):
        DESIGN_LAWS.check_one(DESIGN_LAWS[law], design, DesignPoints.of(design, magnitude))


# Shapes in which a threaded BLAS would cut its sums, and in which several strands run.
LARGE = [(30_000, 3), (2_000, 300), (700, 1_000), (100_000, 1), (12_000, 60)]


@pytest.mark.grid(1)
@pytest.mark.parametrize("shape", LARGE, ids=str)
@pytest.mark.parametrize("kind", ["float64", "float32", "columns"])
def test_large_products_do_not_depend_on_threads(shape, kind):
    X = np.random.default_rng(0).standard_normal(shape)
    X = np.asfortranarray(X) if kind == "columns" else X.astype(kind)
    design = as_design(X)
    law = DESIGN_LAWS["results do not depend on threads"]
    DESIGN_LAWS.check_one(law, design, DesignPoints.of(design))


@pytest.mark.parametrize("shape", [(30_000, 3), (700, 600), (12_000, 60)], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_large_products_are_the_products(shape, dtype):
    design = as_design(np.random.default_rng(0).standard_normal(shape).astype(dtype))
    points = DesignPoints.of(design)
    for name in (
        "matvec is the product",
        "rmatvec is the product with the transpose",
        "second moments are sums over rows",
        "column squares are sums of squares",
        "row squares are sums of squares",
    ):
        DESIGN_LAWS.check_one(DESIGN_LAWS[name], design, points)


@pytest.mark.parametrize("name", [n for n, (design, _) in DESIGNS.items() if design.is_sparse])
def test_sparse_products_on_all_threads_obey_the_laws(name, monkeypatch):
    monkeypatch.setattr("trueline.design.sparse.LARGE", 0)
    design, magnitude = DESIGNS[name]
    points = DesignPoints.of(design, magnitude)
    for law in DESIGN_LAWS:
        DESIGN_LAWS.check_one(law, design, points)


def test_large_sparse_products_do_not_depend_on_threads():
    X = sp.random_array((30_000, 400), density=0.1, rng=0, format="csr")
    assert X.nnz > LARGE_SPARSE
    for matrix in (X, X.tocsc()):
        design = as_design(matrix)
        law = DESIGN_LAWS["results do not depend on threads"]
        DESIGN_LAWS.check_one(law, design, DesignPoints.of(design))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("large", [0, 1_000])
def test_the_extent_is_that_of_the_entries_that_are_not_zero(dtype, large, monkeypatch):
    monkeypatch.setattr("trueline.design.sparse.LARGE", large)
    X = sp.csr_array(np.array([[0.0, -8.0, 0.0], [0.5, 0.0, 2.0]], dtype=dtype))
    assert as_design(X).extent() == (8.0, 0.5)
    X.data[0] = 0.0
    assert as_design(X).extent() == (2.0, 0.5)
    assert as_design(sp.csr_array((2, 3), dtype=dtype)).extent() == (0.0, np.inf)


@pytest.mark.parametrize("X", [np.empty((0, 3)), sp.csr_array((0, 3)), np.empty((4, 0))])
def test_designs_without_rows_or_columns_have_empty_products(X):
    n, d = X.shape
    design = as_design(X)
    assert_array_equal(design.matvec(np.ones((d, 2))), np.zeros((n, 2)))
    assert_array_equal(design.rmatvec(np.ones((n, 2))), np.zeros((d, 2)))
    assert design.toarray().shape == (n, d)
    assert_array_equal(design.column_largest(), np.zeros(d))
    assert_array_equal(design.second_moments(np.ones((n, 1)), None, None).gram, np.zeros((d, d)))


def test_as_design_keeps_the_numbers_where_they_are():
    assert as_design(DENSE).X is DENSE
    X = sp.csr_array(HOLES)
    assert np.shares_memory(as_design(X).X.data, X.data)
    design = as_design(DENSE)
    assert as_design(design) is design


def test_as_design_chooses_the_kind():
    assert isinstance(as_design([[1, 2], [3, 4]]), DenseDesign)
    assert isinstance(as_design(sp.coo_matrix(HOLES)), SparseDesign)


def test_a_matrix_stored_in_pieces_is_not_rewritten():
    X = in_pieces()
    data, indices = X.data.copy(), X.indices.copy()
    as_design(X).column_squares(None, None)
    assert_array_equal(X.data, data)
    assert_array_equal(X.indices, indices)


def test_single_precision_is_accumulated_in_double():
    # 0.1 as a float32, summed 2^20 times: a float32 sum would be off in the third digit.
    tenth = np.float32(0.1)
    design = as_design(np.full((2**20, 1), tenth))
    assert design.rmatvec(np.ones(2**20))[0] == pytest.approx(2**20 * float(tenth), rel=1e-12)


def test_a_scale_of_zero_is_refused():
    with pytest.raises(ValueError, match="not zero"):
        StandardizedDesign(as_design(DENSE), np.zeros(6), np.zeros(6))
