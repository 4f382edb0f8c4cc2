"""A fit that is ended goes on where it was, and gives the same answer to the last bit."""

import errno
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import trueline
from trueline.errors import TableError
from trueline.streams.journal import Journal

N = 4000
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(RNG.standard_normal((N, 4)), columns=["a", "b", "c", "d"])
TABLE["y"] = TABLE["a"] - 2 * TABLE["b"] + RNG.standard_normal(N)
TABLE["kind"] = np.where(TABLE["a"] + RNG.standard_normal(N) > 0, "yes", "no")
FEATURES = ["a", "b", "c", "d"]
MODELS = [
    (trueline.LinearRegression(), "y"),
    (trueline.LassoCV(alphas=10, cv=3), "y"),
    (trueline.LogisticRegression(), "kind"),
    (trueline.PoissonRegressor(), "a"),
]


class EndedError(Exception):
    """Stands for the end of the process."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows")
    for k in range(4):
        part = TABLE.iloc[1000 * k : 1000 * (k + 1)]
        part.to_parquet(path / f"{k}.parquet", row_group_size=400)
    return path


def opened(folder, target, **more):
    source = folder
    if target == "a":
        target, columns = "count", ["b", "c", "d"]
        source = lambda: [TABLE.assign(count=TABLE["a"].abs().round())]  # noqa: E731
    else:
        columns = FEATURES
    return trueline.open(source, target=target, columns=columns, memory="64KB", **more)


def ended_after(rows, batches):
    """Let reading fail after so many batches."""
    left = [batches]

    def tell(number, done):
        left[0] -= 1
        if left[0] < 0:
            raise EndedError

    rows.on_batch = tell


@pytest.mark.parametrize(("model", "target"), MODELS, ids=str)
def test_a_fit_that_is_ended_again_and_again_gives_the_same_answer(folder, tmp_path, model, target):
    whole = clone(model).fit(opened(folder, target))
    path, ends = tmp_path / "fit.journal", 0
    while True:
        rows = opened(folder, target, checkpoint=path)
        ended_after(rows, 7 + 3 * ends)  # certificates read their rows without a journal
        try:
            fitted = clone(model).fit(rows)
            break
        except EndedError:
            ends += 1
            assert path.exists()
    assert ends > 0
    np.testing.assert_array_equal(fitted.coef_, whole.coef_)
    np.testing.assert_array_equal(fitted.intercept_, whole.intercept_)
    assert fitted.certificate_.gap == whole.certificate_.gap
    assert not path.exists()  # the fit has ended


@settings(max_examples=8, deadline=None)
@given(st.data())
def test_a_journal_that_is_cut_or_damaged_anywhere_is_as_good(folder, tmp_path_factory, data):
    path = tmp_path_factory.mktemp("cut") / "fit.journal"
    rows = opened(folder, "kind", checkpoint=path)
    ended_after(rows, 40)
    with pytest.raises(EndedError):
        trueline.LogisticRegression().fit(rows)
    raw = bytearray(path.read_bytes())
    head = path.stat().st_size and 24 + 64 + 4  # the record that names the rows
    place = data.draw(st.integers(head, len(raw) - 1))
    if data.draw(st.booleans()):
        raw = raw[:place]
    else:
        raw[place] ^= 255
    path.write_bytes(raw)
    fitted = trueline.LogisticRegression().fit(opened(folder, "kind", checkpoint=path))
    whole = trueline.LogisticRegression().fit(opened(folder, "kind"))
    np.testing.assert_array_equal(fitted.coef_, whole.coef_)


def test_what_was_read_is_not_read_again(folder, tmp_path):
    rows = opened(folder, "y", checkpoint=tmp_path / "fit.journal")
    ended_after(rows, 9)
    with pytest.raises(EndedError):
        trueline.Ridge().fit(rows)
    again, seen = opened(folder, "y", checkpoint=tmp_path / "fit.journal"), []
    again.on_batch = lambda number, done: seen.append(done)
    trueline.Ridge().fit(again)
    # The journal has nine batches; a look at the first rows aside, reading goes on at the tenth.
    assert len(seen) <= again.n_parts - 9 + 1


def test_a_checkpoint_of_other_rows_is_refused(folder, tmp_path):
    path = tmp_path / "fit.journal"
    Journal(path, b"other rows")
    with pytest.raises(TableError, match="was written for other rows, or these have changed"):
        opened(folder, "y", checkpoint=path)
    path.write_bytes(b"a letter")
    with pytest.raises(TableError, match="is no checkpoint: name another file"):
        opened(folder, "y", checkpoint=path)
    assert path.read_bytes() == b"a letter"


def test_a_full_disk_loses_nothing(folder, tmp_path, monkeypatch):
    rows = opened(folder, "kind", checkpoint=tmp_path / "fit.journal")
    left, whole_file = [30], rows.journal._open

    class Full:
        def __init__(self):
            self.file = whole_file()

        def __enter__(self):
            return self

        def __exit__(self, *given):
            self.file.close()

        def __getattr__(self, name):
            return getattr(self.file, name)

        def write(self, data):
            left[0] -= 1
            if left[0] < 0:
                self.file.write(data[: len(data) // 2])
                raise OSError(errno.ENOSPC, "No space left on device")
            self.file.write(data)

    monkeypatch.setattr(rows.journal, "_open", Full)
    with pytest.raises(TableError, match=r"\(No space left on device\)\. Nothing is lost"):
        trueline.LogisticRegression().fit(rows)
    fitted = trueline.LogisticRegression().fit(
        opened(folder, "kind", checkpoint=tmp_path / "fit.journal")
    )
    whole = trueline.LogisticRegression().fit(opened(folder, "kind"))
    np.testing.assert_array_equal(fitted.coef_, whole.coef_)


_FIT = """
import sys, trueline
rows = trueline.open(sys.argv[1], target="kind", columns=list("abcd"), memory="64KB",
                     checkpoint=sys.argv[2])
print("opened", flush=True)
model = trueline.LogisticRegression(solver="lbfgs").fit(rows)
trueline.save(model, sys.argv[3])
"""


@pytest.mark.slow
def test_a_process_that_is_killed_at_any_moment_goes_on(folder, tmp_path):
    where = [folder, tmp_path / "fit.journal", tmp_path / "model.trueline"]
    command = [sys.executable, "-c", _FIT, *map(str, where)]
    kills, draw = 0, np.random.default_rng(0)
    for _ in range(12):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(float(draw.uniform(0.0, 0.05 + 0.02 * kills)))
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                kills += 1
        if where[2].exists():
            break
    if not where[2].exists():
        subprocess.run(command, check=True, capture_output=True)
    assert kills > 0
    whole = trueline.LogisticRegression(solver="lbfgs").fit(opened(folder, "kind"))
    np.testing.assert_array_equal(trueline.load(where[2]).coef_, whole.coef_)
