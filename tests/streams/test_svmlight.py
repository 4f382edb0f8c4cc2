"""Text in the format of SVMlight: what scikit-learn reads, in batches."""

import io
import random
import struct

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import trueline
from trueline import OnlineLogisticRegression
from trueline.errors import TableError
from trueline.streams import svmlight, svmlight_rows
from trueline.streams.svmlight_rows import parsed

ODD = b"""# a remark first

1 1:2 3:4.5\t7:-1e-3   # and here
-1  qid:7 2:.5 4:5. 6:+1E+2\r
2.5e0 # no entries
+3 qid:8
   0 0:0 1:-0 2:00012 3:1_0 4:1e300 5:1e-300 6:4.9e-324 8:123456789012345678901234567890
1#at once
7 1:9007199254740993 2:0.1000000000000000055511151231257827 3:1e23 4:8.5e22 5:18014398509481985e-1
"""


def _expected(text):
    return load_svmlight_file(io.BytesIO(text), zero_based=True, n_features=100)


def _assert_same(rows, text):
    X, y = _expected(text)
    for ours, theirs in (
        (rows.labels, y),
        (rows.data, X.data),
        (rows.indices, X.indices),
        (rows.indptr, X.indptr),
    ):
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(np.signbit(ours), np.signbit(theirs))


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_odd_lines_are_read_as_by_scikit_learn(monkeypatch, end, is_compiled):
    monkeypatch.setattr(svmlight_rows, "is_ready", lambda kernel: is_compiled)
    _assert_same(parsed(ODD.strip() + end), ODD)


def _numbers(count):
    """Numbers in all notations, in which the nearest double is hard to find."""
    draw = random.Random(0)
    for _ in range(count):
        bits = struct.pack("Q", draw.getrandbits(64))
        middle = str(2 * (draw.getrandbits(53) | 2**52) + 1)  # between two doubles
        yield draw.choice(
            [
                repr(draw.gauss(0, 1)),
                repr(struct.unpack("d", bits)[0]),
                f"{draw.random():.16g}",
                f"{draw.gauss(0, 1) * 10.0 ** draw.randrange(-12, 12):.{draw.randrange(25)}e}",
                f"{draw.gauss(0, 100):.{draw.randrange(30)}f}",
                str(draw.getrandbits(draw.randrange(1, 90))),
                middle,
                f"{middle[:-3]}.{middle[-3:]}",
                f"{middle}e{draw.randrange(-22, 22)}",
            ]
        )


def test_every_number_is_rounded_to_the_nearest_double():
    numbers = list(_numbers(20_000))
    text = "\n".join(f"{number} 1:{number}" for number in numbers).encode()
    rows, expected = parsed(text), [float(number) for number in numbers]
    np.testing.assert_array_equal(rows.labels, expected)
    np.testing.assert_array_equal(rows.data, expected)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"1 1:two", "'two' is not a number"),
        (b"word 1:2", "'word' is not a number"),
        (b"1,2 1:2", "'1,2' is not a number"),
        (b"1 1:2 3", "'3' is not column:value"),
        (b"1 1: 2", "'' is not a number"),
        (b"1 1:2e", "'2e' is not a number"),
        (b"1 1:.", r"'\.' is not a number"),
        (b"1 x:2", "'x' is not the number of a column"),
        (b"1 :2", "'' is not the number of a column"),
        (b"1 -1:2", "column -1 is not among 0, ..., 2,147,483,646"),
        (b"1 4294967297:2", "column 4294967297 is not among"),
        (b"1 2:1 2:1", "column 2 comes after 2: columns must rise"),
        (b"1 3:1 2:1", "column 2 comes after 3: columns must rise"),
    ],
)
def test_an_error_names_the_line(tmp_path, line, words):
    lines = [b"1 1:2 3:4"] * 70_000
    lines[60_001] = line
    path = tmp_path / "rows.svm"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(TableError, match=rf"rows\.svm cannot be read: line 60,002: .*{words}"):
        trueline.open(path, memory="1MB")


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# a remark\n"])
def test_a_file_without_rows_is_refused(tmp_path, text):
    path = tmp_path / "rows.svm"
    path.write_bytes(text)
    with pytest.raises(TableError, match=r"rows\.svm has no rows"):
        trueline.open(path)


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("memory", ["1MB", "1GB"])
def test_files_are_read_in_batches_of_whole_lines(tmp_path, zero_based, memory):
    S = sp.random_array((4000, 50), density=0.2, rng=0, format="csr")
    target = np.arange(4000.0)
    path = tmp_path / "rows.svm"
    dump_svmlight_file(S, target, str(path), zero_based=zero_based, comment="of a test")
    rows = trueline.open(path, memory=memory)
    X, y = load_svmlight_file(str(path))
    assert (len(rows.starts) > 3) == (memory == "1MB")
    np.testing.assert_array_equal(rows.target, y)
    for _ in range(2):
        np.testing.assert_array_equal(rows.toarray(), X.toarray())
    some = [(where, part.X.toarray()) for where, part in rows.parts_from(1)]
    for where, part in some:
        np.testing.assert_array_equal(part, X[where].toarray())
    assert sum(len(part) for _, part in some) == 4000 - rows.starts[1]


def test_blocks_of_remarks_alone_are_no_batches(tmp_path):
    path = tmp_path / "rows.svm"
    remarks = b"# nothing\n" * 8000
    path.write_bytes(remarks + b"1 1:2\n" * 20_000 + remarks + b"2 1:3\n" * 20_000 + remarks)
    rows = trueline.open(path, memory=1.0)
    np.testing.assert_array_equal(rows.toarray()[:, 0], 1.0 + rows.target)
    for first in range(rows.n_parts):
        where, part = next(rows.parts_from(first))
        assert where.start == rows.starts[first]
        np.testing.assert_array_equal(part.X.toarray()[:, 0], 1.0 + rows.target[where])


@pytest.mark.parametrize(("memory", "passes"), [("1GB", 1), (1.0, 3)])
def test_few_rows_are_parsed_once(tmp_path, monkeypatch, memory, passes):
    S = sp.random_array((8000, 20), density=0.5, rng=0, format="csr")
    path = tmp_path / "rows.svm"
    dump_svmlight_file(S, np.sign(S.sum(axis=1) - 5.0), str(path))
    calls = []
    monkeypatch.setattr(svmlight, "parsed", lambda *given: calls.append(0) or parsed(*given))
    rows = trueline.open(path, memory=memory)
    model = OnlineLogisticRegression(max_iter=2, tol=None, shuffle=False).fit(rows)
    assert len(calls) == passes * rows.n_parts
    whole = OnlineLogisticRegression(max_iter=2, tol=None, shuffle=False).fit(S, rows.target)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-9)
