"""Forgeries by grammar never verify a claim that is false, and honest fits verify.

More of both by ``python -m tests.attack``.
"""

from __future__ import annotations

import pytest

from .adapter import ask, proof_kinds
from .campaign import attack, attacks, honest, pool_of
from .honest import make

SEED = 0


@pytest.fixture(scope="module")
def pool():
    return pool_of(SEED, 2)


def said(faults):
    return "\n".join(
        f"{outcome} {kind} {name}: {text}"[:500] for outcome, kind, name, text in faults
    )


def test_forgeries_are_refused(pool):
    tally = attacks(pool, 1000)
    assert not tally.faults, said(tally.faults)
    # They are not all refused for their form: many leave a claim that is true.
    assert tally.total("refused") > 650
    assert tally.total("accepted, true") > 30


def test_honest_fits_verify_and_their_gaps_bound_the_distance_to_the_optimum():
    tally = honest(100, seed=3)
    # A right answer whose proof is lost in rounding is rare; a gap that is too small is a fault.
    lost = [fault for fault in tally.faults if fault[0] == "FAILED"]
    assert len(lost) <= 1, said(lost)
    assert len(tally.faults) == len(lost), said(tally.faults)
    assert tally.total("verified") > 75


def test_an_attack_is_repeated_by_its_name(pool):
    case = pool[5]
    again = make(case.name)
    assert attack(case, pool, 11)[:2] == attack(again, pool, 11)[:2]


@pytest.mark.parametrize(
    "name", ["logistic:231000045", "ordered_quantiles:7171000091", "firth:90210000462"]
)
def test_fits_whose_proofs_were_lost_in_rounding_verify(name):
    case = make(name)
    assert ask(case.certificate, case.X, case.y, case.weight).word == "proven"


@pytest.mark.slow
def test_many_forgeries_are_refused():
    pool = pool_of(SEED + 1, 6)
    missing = set(proof_kinds()) - {case.kind for case in pool}
    assert missing <= {"zero-one search", "conditioned search"}
    tally = attacks(pool, 40_000)
    assert not tally.faults, said(tally.faults)


@pytest.mark.slow
def test_many_honest_fits_verify():
    tally = honest(3000, seed=5)
    assert not tally.faults, said(tally.faults)
