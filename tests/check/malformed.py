"""Certificates with one field that does not have the form it should have."""

from dataclasses import fields, is_dataclass, replace

import numpy as np

NONSENSE = {
    "none": None,
    "text": "x",
    "nan": np.nan,
    "infinite": np.inf,
    "complex": 1j,
    "object": object(),
    "empty": np.zeros(0),
    "cube": np.zeros((1, 1, 1)),
    "row of texts": np.array(["a", "b"]),
    "huge integer": 10**400,
    "list of lists": [[1.0], [2.0, 3.0]],
}


def malformed(certificate):
    """(name, certificate) for every field, and every field of the witness, made nonsense."""
    kept = {"reading"}
    for field in fields(certificate):
        for kind, value in NONSENSE.items():
            if field.name not in kept:
                yield f"{field.name}: {kind}", replace(certificate, **{field.name: value})
    witness = getattr(certificate, "witness", {})
    for name, value in witness.items():
        changes = {f"{name}: {kind}": nonsense for kind, nonsense in NONSENSE.items()}
        array = np.asarray(value)
        changes[f"{name}: column"] = array[..., None]
        changes[f"{name}: twice"] = np.concatenate([np.atleast_1d(array)] * 2)
        if array.dtype.kind in "fiu":
            changes[f"{name}: turned into texts"] = array.astype(str)
        for label, nonsense in changes.items():
            yield label, replace(certificate, witness={**witness, name: nonsense})
    for name in witness:
        rest = {key: value for key, value in witness.items() if key != name}
        yield f"without {name}", replace(certificate, witness=rest)
    if witness:
        extra = {**witness, "radius": np.zeros(1)}
        yield "another field", replace(certificate, witness=extra)


def assert_refused(certificate, X, y, harmless=()):
    """Nothing malformed verifies, and nothing is 'not computable'."""
    assert is_dataclass(certificate)
    for name, claim in malformed(certificate):
        found = claim.verify(X, y)
        assert "not computable" not in str(found), (name, str(found))
        assert not found or name in harmless, name
