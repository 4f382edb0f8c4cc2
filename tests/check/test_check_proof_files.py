"""Proof files: what a certificate proves, checked by somebody who has the checker alone."""

import json
import subprocess
import sys
import zipfile
from io import BytesIO

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.gaussian_process.kernels import RBF

import trueline as tl
from trueline.check import THEOREMS, ProofFileError, Verdict, read_proof, verify, write_proof
from trueline.check.__main__ import main
from trueline.losses import Huber

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3)) * [1.0, 5.0, 0.2] + [0.0, 2.0, 1.0]
Y = X @ [1.0, -0.2, 3.0] + 0.3 * RNG.normal(size=30)
WEIGHTS = RNG.integers(1, 3, size=30).astype(float)
SIDE = np.where(X[:, 0] > 0, "right", "left")
APART = X + 9.0 * (X[:, :1] > 0)
NOISY = np.where(np.median(Y) < Y, "high", "low")
THREE = np.array(["a", "b", "c"])[np.digitize(Y, np.quantile(Y, [0.3, 0.7]))]
FAIR = RNG.choice([-1, 1], size=20)
WIDE = RNG.normal(size=(5, 8))
GRID = np.array([[0.0], [1.0], [1.0], [2.0]])
BEYOND = np.array([[1e-300, 0.0], [0.0, 1e300], [1e-300, 1e300]])  # integers of 2,000 bits


def fitted(model, X, y, weights=None):
    model.fit(X, y) if weights is None else model.fit(X, y, sample_weight=weights)
    return model.certificate_, X, y, weights


def decided(answer, X, y):
    return answer.certificate, X, y, None


#: A claim of every kind, with data that are dense, sparse, weighted, of several targets or classes.
CLAIMS = {
    "quadratic": lambda: fitted(tl.Ridge([0.1, 9.0]), X, np.column_stack([Y, -X[:, 0]]), WEIGHTS),
    "row space": lambda: fitted(tl.LinearRegression(), WIDE, Y[:5]),
    "fenchel": lambda: fitted(tl.Lasso(0.1, positive=True), sp.csc_array(X), Y),
    "duality": lambda: fitted(tl.GroupLasso(groups=[0, 0, 1], alpha=0.1), X, Y),
    "ordered duality": lambda: fitted(
        tl.QuantileRegressor(quantile=[0.4, 0.5, 0.6], alpha=0.0, non_crossing=True), X, Y
    ),
    "tangent": lambda: fitted(tl.LogisticRegression(), X.astype(np.float32), THREE),
    "bounded": lambda: fitted(
        tl.LinearRegressor(loss="huber", penalty="none", solver="gradient_descent", max_iter=10**5),
        X[:, [0]],
        Y,
    ),
    "curvature": lambda: fitted(tl.PoissonRegressor(), X, np.exp(Y / 4), WEIGHTS),
    "local": lambda: fitted(tl.TweedieRegressor(power=3, alpha=0.1), X, np.exp(Y / 4)),
    "maximum error": lambda: fitted(tl.ChebyshevRegressor(), X, Y),
    "concomitant": lambda: fitted(tl.HuberRegressor(), X, Y),
    "stationary": lambda: fitted(tl.LogisticRegression(penalty="firth"), X, NOISY),
    "hard margin": lambda: fitted(tl.LinearSVC(C=np.inf, loss="hinge"), APART, SIDE),
    "margin": lambda: decided(tl.maximum_margin(APART, SIDE), APART, SIDE),
    "search": lambda: fitted(tl.BestSubset(k=2), X, Y),
    "conditioned search": lambda: fitted(tl.BestSubset(k=4), WIDE, Y[:5]),
    "zero-one packing": lambda: fitted(tl.ZeroOneHalfspace(), X[:, :2], SIDE),
    "zero-one search": lambda: fitted(tl.ZeroOneHalfspace(), X[:20, [0, 2]], FAIR),
    "training errors": lambda: fitted(tl.OnlineLogisticRegression(), X, THREE),
    "mistake bound": lambda: fitted(tl.Perceptron(), APART, SIDE),
    "kernel mistake bound": lambda: fitted(tl.KernelPerceptron(kernel="rbf"), X, NOISY),
    "separable": lambda: decided(tl.separability(BEYOND, [0, 0, 1]), BEYOND, [0, 0, 1]),
    "quasi-separable": lambda: decided(
        tl.separability(GRID, list("aaxx")), GRID, np.array(list("aaxx"), dtype=object)
    ),
    "not separable": lambda: decided(
        tl.separability(sp.csr_array(X), THREE), sp.csr_array(X), THREE
    ),
    "kernel duality": lambda: fitted(tl.SVC(), X, THREE, WEIGHTS),
    "kernel stationarity": lambda: fitted(tl.SVC(kernel="sigmoid"), X, NOISY),
    "kernel equations": lambda: fitted(tl.KernelRidge(0.1, kernel="rbf"), X, Y),
}
#: Their kernels are objects of scikit-learn, which no file holds.
REFUSED = {"stationary point", "given parameters", "evidence bounds"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "proof.npz"


def directly(certificate, X, y, weights):
    return certificate.verify(X, y) if weights is None else certificate.verify(X, y, weights)


def test_there_is_a_claim_of_every_kind():
    assert set(CLAIMS) | REFUSED == set(THEOREMS)


@pytest.mark.parametrize("kind", CLAIMS)
def test_what_is_read_back_gives_the_same_answer(kind, path):
    claim = CLAIMS[kind]()
    assert claim[0].kind == kind
    expected = directly(*claim)
    assert expected.holds
    write_proof(path, *claim)
    assert verify(*read_proof(path)) == expected


def test_the_answer_follows_the_data_in_the_file(path):
    certificate, X, y, _ = CLAIMS["quadratic"]()
    y = y.copy()
    y[0, 0] += 1e-3
    write_proof(path, certificate, X, y, WEIGHTS)
    assert verify(*read_proof(path)).verdict is Verdict.NOT_PROVEN


def test_a_mapping_that_was_read_is_written_again(path):
    write_proof(path, *CLAIMS["not separable"]())
    first = read_proof(path)
    write_proof(path, *first)
    assert verify(*read_proof(path)) == verify(*first)
    assert verify(*first)


def test_integers_of_any_size(path):
    certificate, X, y, _ = CLAIMS["separable"]()
    large = tuple(tuple(10**9000 * v for v in row) for row in certificate.direction)
    claim = {**vars(certificate), "direction": large}
    assert verify(claim, X, y)  # a multiple of a direction is one
    write_proof(path, claim, X, y)
    assert read_proof(path)[0]["direction"] == [list(row) for row in large]
    assert verify(*read_proof(path))


class Mine(Huber):
    """A loss of somebody else."""


def product(x, z):
    return float(np.dot(x, z))


@pytest.mark.parametrize(
    ("model", "y", "what"),
    [
        (tl.LinearRegressor(loss=Mine(1.0), penalty="l2", alpha=0.1), Y, "loss: a Mine"),
        (tl.KernelRidge(0.1, kernel=product), Y, "metric: a function"),
        (tl.GaussianProcessRegressor(RBF(), alpha=0.1, optimizer=None), Y, "kernel: a RBF"),
        (tl.OneVsRestClassifier(tl.RidgeClassifier()), THREE, "each of its parts"),
    ],
    ids=["loss", "function", "kernel object", "several"],
)
def test_what_is_no_plain_data_is_refused(model, y, what, path):
    certificate = model.fit(X, y).certificate_
    with pytest.raises(ProofFileError, match=what):
        write_proof(path, certificate, X, y)
    assert not path.exists()


def claim_text(change):
    """An archive whose claim was changed."""

    def forge(path):
        with np.load(path) as archive:
            arrays = dict(archive)
        text = change(arrays.pop("claim").tobytes().decode())
        np.savez(path, claim=np.frombuffer(text.encode(), dtype=np.uint8), **arrays)

    return forge


def member(name, content, compression=zipfile.ZIP_STORED):
    def forge(path):
        with zipfile.ZipFile(path, "a", compression) as archive:
            archive.writestr(name, content)

    return forge


def sparse(**change):
    """A matrix whose indices lead out of it."""

    def forge(path):
        parts = {"data": [1.0], "indices": [0], "indptr": [0, 1], "shape": (1, 1)} | change
        arrays = {key: np.array(value) for key, value in parts.items()}
        claim = {"format": "trueline proof 1", "certificate": {}, "data": [None] * 3}
        claim["data"][0] = {"$sparse": [{"$array": key} for key in parts]}
        text = np.frombuffer(json.dumps(claim).encode(), dtype=np.uint8)
        np.savez(path, claim=text, **arrays)

    return forge


MALFORMED = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "no archive": lambda path: path.write_bytes(b"\x93NUMPY" + b"\xff" * 50),
    "one array": lambda path: path.write_bytes(npy(np.zeros(3))),
    "pickle": lambda path: np.savez(path, claim=np.array([product], dtype=object)),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-300]),
    "without a claim": lambda path: np.savez(path, a0=X),
    "no text": lambda path: np.savez(path, claim=X),
    "no JSON": claim_text(lambda text: text[:-1]),
    "endless JSON": claim_text(lambda text: "[" * 200_000),
    "no mapping": claim_text(lambda text: "[]"),
    "a number": claim_text(lambda text: "3"),
    "other format": claim_text(lambda text: text.replace("proof 1", "proof 2")),
    "array not there": claim_text(lambda text: text.replace('"a1"', '"a77"')),
    "no name of an array": claim_text(lambda text: text.replace('"a1"', "[]")),
    "no integer": claim_text(lambda text: text.replace('"0x', '"0z')),
    "data of two parts": claim_text(lambda text: text.replace('"data": [', '"data": [0, ')),
    "certificate of no fields": claim_text(
        lambda text: '{"format": "trueline proof 1", "certificate": 1, "data": [1, 1, 1]}'
    ),
    "larger than it is": member("more.npy", bytes(10**7), zipfile.ZIP_DEFLATED),
    "shape beyond memory": member("more.npy", b"\x93NUMPY\x01\x00v\x00" + (
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904,), }".ljust(117)
        + b"\n"
    )),
    "indices out of range": sparse(indices=[10**9]),
    "negative indices": sparse(indices=[-5]),
    "rows that end elsewhere": sparse(indptr=[0, 10**6]),
    "shape of no matrix": sparse(shape=(1, 1, 1)),
}  # fmt: skip


def npy(array):
    file = BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize("fault", MALFORMED)
def test_malformed_files_are_one_error_and_one_line(fault, path, capsys):
    write_proof(path, *CLAIMS["quasi-separable"]())
    MALFORMED[fault](path)
    with pytest.raises(ProofFileError, match="is no proof file"):
        read_proof(path)
    assert main([str(path)]) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert "Traceback" not in seen.err


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda claim: claim, 0),
        (lambda claim: ({**vars(claim[0]), "gap": 0.0}, *claim[1:]), 1),
        (lambda claim: ({**vars(claim[0]), "kind": "nonsense"}, *claim[1:]), 1),
        (lambda claim: ({"kind": "quadratic"}, *claim[1:]), 1),
        (lambda claim: (claim[0], X[:, :2], *claim[2:]), 1),
        (lambda claim: CLAIMS["local"](), 3),
    ],
    ids=["proven", "gap", "kind", "no fields", "other columns", "under a condition"],
)
def test_exit_codes_tell_the_three_answers(change, code, path, capsys):
    write_proof(path, *change(CLAIMS["fenchel"]()))
    assert main([str(path)]) == code
    seen = capsys.readouterr().out
    assert seen.startswith(f"{path}\ncheck ")
    ending = {0: "holds.", 1: "The certificate does NOT hold.", 3: "The certificate holds if only"}
    assert ending[code] in seen


def test_of_several_files_the_worst_counts(tmp_path, capsys):
    names = [str(tmp_path / f"{name}.npz") for name in ("proven", "condition", "missing")]
    write_proof(names[0], *CLAIMS["fenchel"]())
    write_proof(names[1], *CLAIMS["local"]())
    assert main(names[:1]) == 0
    assert main(names[:2]) == 3
    assert main(names) == 2
    assert main(["--full", *names[:1]]) == 0
    assert "no coefficients give" in capsys.readouterr().out


def test_letters_that_a_terminal_does_not_have(path):
    y = np.array(["a", "\udc80"])[[0, 0, 1, 1]]
    answer = tl.separability(GRID, [0, 0, 1, 1]).certificate
    write_proof(path, {**vars(answer), "classes": ["b", "c"]}, GRID, y)
    command = [sys.executable, "-m", "trueline.check", str(path)]
    done = subprocess.run(command, capture_output=True, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr


ALONE = """
import sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        own = name.startswith("trueline.") and not name.startswith("trueline.check")
        if own or name.split(".")[0] in ("sklearn", "numba", "pandas", "joblib", "narwhals"):
            raise ImportError(f"{name} is not installed here")

sys.meta_path.insert(0, Nothing())
sys.argv = ["check", *sys.argv[1:]]
import runpy
runpy.run_module("trueline.check", run_name="__main__")
"""


def test_every_kind_is_checked_with_numpy_and_scipy_alone(tmp_path):
    names = []
    for kind, claim in CLAIMS.items():
        names.append(str(tmp_path / f"{kind}.npz"))
        write_proof(names[-1], *claim())
    command = [sys.executable, "-c", ALONE, *names]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.returncode == 3  # one of them is proven under a condition
    assert done.stdout.count("The certificate holds.") == len(CLAIMS) - 1
    assert done.stdout.count("The certificate holds if") == 1
