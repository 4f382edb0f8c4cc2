"""The checker of support vector machines: honest fits hold, forged and mutated ones do not."""

import math
from dataclasses import asdict, replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels

import trueline.certificates.kernel as prover
from trueline import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from trueline.check import Verdict, verify
from trueline.kernels import KernelFunction

MACHINES = {
    "SVC": lambda **kw: SVC(**kw),
    "NuSVC": lambda **kw: NuSVC(nu=0.4, **kw),
    "SVR": lambda **kw: SVR(**kw),
    "NuSVR": lambda **kw: NuSVR(nu=0.4, **kw),
    "OneClassSVM": lambda **kw: OneClassSVM(nu=0.3, **kw),
}


def data(name, n=40, k=2, seed=0):
    generator = np.random.default_rng(seed)
    if "SVC" in name:
        y = np.arange(n) % k
        return generator.normal(size=(n, 3)) + 1.2 * y[:, None] * np.array([1.0, -1.0, 0.5]), y
    X = generator.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + 0.3 * generator.normal(size=n)


@pytest.fixture(params=MACHINES)
def fitted(request):
    X, y = data(request.param)
    return MACHINES[request.param](gamma=0.5).fit(X, y), X, y


# --- honest fits --------------------------------------------------------------------------------


CASES = [
    (name, kernel, scale)
    for name in MACHINES
    for kernel in ("linear", "rbf", "poly", "sigmoid")
    for scale in (1e-8, 1.0, 1e8)
    # Margins and levels that are chosen have the units of the rows, where gamma takes none out.
    if not (name in ("NuSVC", "OneClassSVM") and kernel == "linear" and scale != 1.0)
    if not (name == "NuSVC" and kernel == "sigmoid")
]


@pytest.mark.grid(2)
@pytest.mark.parametrize(("name", "kernel", "scale"), CASES)
def test_honest_fits_hold(name, kernel, scale):
    X, y = data(name)
    weights = np.random.default_rng(1).uniform(0, 2, len(X))
    weights[:3] = 0
    X = X * scale
    # gamma, and the price with a linear kernel, take the scale of the rows out again.
    settings = {"kernel": kernel, "gamma": 1.0 / (3 * scale**2), "coef0": 1.0}
    if kernel == "linear" and name in ("SVC", "SVR", "NuSVR"):
        settings["C"] = 1.0 / scale**2
    for rows in (X, sp.csr_array(X)):
        model = MACHINES[name](**settings).fit(rows, y, weights)
        verification = model.certificate_.verify(rows, y, weights)
        assert verification.verdict is Verdict.PROVEN, str(verification)
        assert verification.statement


def test_plain_data_are_enough(fitted):
    model, X, y = fitted
    fields = asdict(model.certificate_)
    assert verify(fields, X, y)
    assert verify({**fields, "coef": fields["coef"].tolist()}, X.tolist(), y.tolist())


def test_the_infinite_price_is_proven_and_not_for_nothing():
    X, y = data("SVC")
    X = X + 6.0 * y[:, None]
    model = SVC(C=math.inf, gamma=0.5).fit(X, y)
    certificate = model.certificate_
    assert certificate.gap < 1e-6
    assert certificate.verify(X, y)
    nothing = replace(
        certificate,
        coef=0.0 * certificate.coef,
        objective=0.0,
        objective_rounding=1e-9,
        gap=1e-9,
        violation=1e9,
    )
    assert not nothing.verify(X, y)
    short = replace(certificate, coef=0.9 * certificate.coef, violation=1e9)
    short = replace(short, objective=0.81 * certificate.objective)
    assert not short.verify(X, y)


def test_the_gap_bounds_the_distance_to_the_optimum(fitted):
    model, X, y = fitted
    certificate = model.certificate_
    best = type(model)(**{**model.get_params(), "tol": 1e-10}).fit(X, y).certificate_
    assert certificate.objective - best.objective <= certificate.gap + best.objective_rounding


# --- forgeries ----------------------------------------------------------------------------------


def forgeries(c):
    """Certificates that claim what is not so, or have not the form of one."""
    first, m = c.support[:1], len(c.support)
    twice = np.concatenate([c.support, first])
    yield "support twice", replace(c, support=twice, coef=c.coef[:, [*range(m), 0]])
    halves = np.concatenate([c.coef, c.coef[:, :1]], axis=1)
    halves[:, [0, -1]] *= 0.5
    yield "support in halves", replace(c, support=twice, coef=halves)
    yield "extra rows", replace(c, coef=np.vstack([c.coef, 0 * c.coef]))
    yield "extra intercept", replace(c, intercept=np.append(c.intercept, 0.0))
    yield "no support", replace(c, support=c.support[:-1], coef=c.coef[:, :-1])
    yield "support beyond the rows", replace(c, support=c.support + 1000)
    yield "negative support", replace(c, support=c.support - 1000)
    for kernel in (
        KernelFunction("rbf", gamma=-0.5),
        KernelFunction("rbf", gamma=math.nan),
        KernelFunction("poly", gamma=0.5, coef0=-1.0),
        KernelFunction("sigmoid", gamma=0.5),
        KernelFunction("precomputed"),
        KernelFunction("laplacian", gamma=0.5),
        None,
        lambda A, B: A @ B.T,
        lambda A, B: 1 / 0,
        lambda A, B: np.ones(3),
    ):
        yield f"kernel {kernel}", replace(c, kernel=kernel)
    for name in c.parameters:
        for value in (-1.0, 0.0, 1e-3, 2.0, 1e308, math.nan, "1", None, [1.0]):
            yield f"{name}={value}", replace(c, parameters={**c.parameters, name: value})
    for name in c.witness:
        twice = 2 * np.asarray(c.witness[name])
        for value in (0.0, -1.0, 1e300, math.inf, None, np.ones(7), twice):
            yield f"{name}={value}", replace(c, witness={**c.witness, name: value})
    yield "radius", replace(c, witness={**c.witness, "radius": 0.0})
    yield "gap", replace(c, gap=0.0)
    yield "negative gap", replace(c, gap=-1.0)
    yield "objective", replace(c, objective=c.objective * (1 + 1e-6))
    yield "rounding", replace(c, objective_rounding=0.0)
    yield "violation", replace(c, violation=-1.0)
    yield "coef", replace(c, coef=c.coef * (1 + 1e-6))
    yield "sign", replace(c, coef=-c.coef)
    yield "intercept", replace(c, intercept=c.intercept + 1e-3)
    yield "machine", replace(c, machine="svm")
    yield "another machine", replace(c, machine={"svr": "nu_svr"}.get(c.machine, "svr"))
    yield "classes", replace(c, classes=np.array([0, 0]))
    yield "text", replace(c, coef="much")
    yield "objects", replace(c, coef=np.array([[None]]), support=np.array([0]))


def test_forgeries_are_not_proven(fitted):
    model, X, y = fitted
    certificate = model.certificate_
    harmless = {"classes"} if "SVC" not in type(model).__name__ else set()
    if certificate.machine == "one_class":
        harmless |= {"intercept"}  # the level moves, and the objective with it
        assert not replace(certificate, intercept=certificate.intercept + 0.5).verify(X, y)
    for name, forged in forgeries(certificate):
        verification = verify(forged, X, y)
        assert name in harmless or not verification, name
        assert "not computable" not in str(verification), name


def test_smaller_prices_are_only_proven_where_they_are_true():
    """A price that no multiplier reaches and no loss pays may be any: the claim stays true."""
    X, y = data("SVC")
    X = X + 6.0 * y[:, None]
    model = SVC(C=1e3, gamma=0.5).fit(X, y)
    certificate = model.certificate_
    larger = replace(certificate, parameters={"C": 2e3})
    assert bool(larger.verify(X, y)) == bool(np.abs(model.dual_coef_).max() < 1e3)
    smaller = replace(certificate, parameters={"C": 0.5 * float(np.abs(model.dual_coef_).max())})
    assert not smaller.verify(X, y)


@pytest.mark.parametrize("name", ["SVR", "NuSVR"])
def test_permuted_targets_are_proven_only_if_the_objective_is_the_same(name):
    """Targets of rows within the tube may change places; the claim is about them all the same."""
    X, y = data(name, n=12)
    model = MACHINES[name](gamma=0.5).fit(X, y)
    certificate = model.certificate_
    generator = np.random.default_rng(0)
    epsilon = getattr(model, "epsilon_", model.get_params().get("epsilon"))
    K = pairwise_kernels(X, metric="rbf", gamma=0.5)
    beta = np.zeros(12)
    beta[model.support_] = model.dual_coef_[0]
    f = K @ beta + model.intercept_[0]
    refused = 0
    for _ in range(200):
        other = generator.permutation(y)
        loss = np.maximum(np.abs(other - f) - epsilon, 0).sum()
        if name == "NuSVR":
            loss += 0.4 * 12 * epsilon
        objective = 0.5 * beta @ K @ beta + loss
        is_same = abs(objective - certificate.objective) < 1e-9
        proven = bool(certificate.verify(X, other))
        assert is_same or not proven
        refused += not proven
    assert refused > 150


def test_data_that_do_not_fit_are_refused(fitted):
    model, X, y = fitted
    certificate = model.certificate_
    bad = X.copy()
    bad[0, 0] = np.nan
    others = [(X[:-1], y[:-1]), (bad, y), (X[:, :1], y), (None, y), (X, None), (X, y[:-1])]
    others += [("X", y), (X.astype(object), y), (X * 1e200, y), (X[:0], y[:0]), (X[0], y)]
    for rows, target in others:
        verification = certificate.verify(rows, target)
        if certificate.machine == "one_class" and rows is X:
            assert verification  # its target is not looked at
        elif not (isinstance(rows, np.ndarray) and rows.dtype == object):
            assert not verification
        assert "not computable" not in str(verification)
    for weights in (np.zeros(len(X)), -np.ones(len(X)), np.ones(3), np.full(len(X), np.nan), "w"):
        verification = certificate.verify(X, y, weights)
        assert not verification
        assert "not computable" not in str(verification)


# --- faults in the prover -----------------------------------------------------------------------


def mutate_gap(certify):
    def certified(*given):
        return replace(certify(*given), gap=1e-6 * certify(*given).gap)

    return certified


def mutate_multiplier(certify):
    def certified(claim, *given):
        coef, witness = claim.coef.copy(), dict(claim.witness)
        coef[0, 0] *= 0.5
        if "multipliers" in witness:
            half = np.where(np.arange(len(coef.T)), 1.0, 0.5)
            witness["multipliers"] = witness["multipliers"] * half
        wrong = certify(replace(claim, coef=coef, witness=witness), *given)
        return replace(wrong, coef=claim.coef, witness=claim.witness)

    return certified


def mutate_rows(certify):
    """The first row that costs something is left out of the sums."""

    def certified(claim, X, y, weights):
        i = int(claim.support[0])
        rest = np.arange(len(weights)) != i
        place = claim.support != i
        part = replace(
            claim,
            support=claim.support[place] - (claim.support[place] > i),
            coef=claim.coef[:, place],
            witness={
                name: value[:, place] if name == "multipliers" else value
                for name, value in claim.witness.items()
            },
        )
        found = certify(part, X[rest], None if y is None else np.asarray(y)[rest], weights[rest])
        numbers = ("objective", "objective_rounding", "gap", "violation")
        return replace(claim, **{name: getattr(found, name) for name in numbers})

    return certified


@pytest.mark.parametrize("mutate", [mutate_gap, mutate_multiplier, mutate_rows])
@pytest.mark.parametrize("name", MACHINES)
def test_faults_of_the_prover_are_noticed(name, mutate, monkeypatch):
    X, y = data(name)
    monkeypatch.setattr(prover, "certify_support_vectors", mutate(prover.certify_support_vectors))
    model = MACHINES[name](gamma=0.5).fit(X, y)
    verification = model.certificate_.verify(X, y)
    assert not verification, str(verification)
    assert "not computable" not in str(verification)
