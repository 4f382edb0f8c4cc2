"""Proof files: a claim with its data, for readers who have this checker and nothing else.

A file is an ``.npz`` archive, not compressed. Its array "claim" is JSON text in UTF-8: mappings,
lists, texts, floats, true, false, null, and in addition ::

    {"$integer": "-0x1f"}      a whole number of any size
    {"$array": "a3"}           the array of that name in the archive
    {"$sparse": [...]}         a CSR matrix: data, indices, indptr, shape

Losses, penalties and kernels are mappings of their names and parameters. Nothing in a file is code:
what is no plain data, such as a function, is refused when it is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from trueline.check.schema import get, parameters
from trueline.check.verdict import ProofFileError

_FORMAT = "trueline proof 1"


def write_proof(
    path: Any, certificate: Any, X: Any, y: Any = None, sample_weight: Any = None
) -> None:
    """Write a certificate and the data that it is about to one file.

    Parameters
    ----------
    path : str or path
        Replaced if it exists.
    certificate : certificate, or mapping with the same fields
    X, y, sample_weight
        As for ``certificate.verify``. What the file holds is what the claim is about: where the
        estimator turns classes into signs, or forms columns, the signs and these columns.

    Raises
    ------
    ProofFileError
        If the claim holds what is no plain data: a loss, penalty or kernel of one's own, a
        function, a kernel object of scikit-learn; or if it is made of several proofs.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from trueline import Ridge
    >>> from trueline.check import read_proof, verify, write_proof
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 4.0])
    >>> certificate = Ridge().fit(X, y).certificate_
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "proof.npz")
    ...     write_proof(path, certificate, X, y)
    ...     print(verify(*read_proof(path)).verdict.value)
    proven
    """
    kind = get(certificate, "kind")
    if not isinstance(kind, str) or get(certificate, "parts") is not None:
        raise ProofFileError("This is no single certificate. Write each of its parts to a file.")
    fields = dict(certificate if isinstance(certificate, Mapping) else vars(certificate))
    reading = fields.pop("reading", None)
    given = (X, y, sample_weight) if reading is None else reading(X, y, sample_weight)
    data = [v if v is None or sp.issparse(v) else np.asarray(v) for v in given]
    claim = {"format": _FORMAT, "certificate": {**fields, "kind": kind}, "data": data}
    arrays: dict[str, Any] = {}
    text = json.dumps(_plain(claim, arrays, "the claim")).encode()
    with Path(path).open("wb") as file:
        np.savez(file, claim=np.frombuffer(text, dtype=np.uint8), **arrays)


def read_proof(path: Any) -> tuple[dict[str, Any], Any, Any, Any]:
    """Certificate (a mapping), X, y and sample_weight of a proof file, for :func:`verify`.

    Raises
    ------
    ProofFileError
        If the file is missing or no proof file. Nothing in a file can run code.
    """
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            # Arrays that are not compressed are no larger than the file.
            parts = archive.zip.infolist()
            if sum(part.file_size for part in parts) > Path(path).stat().st_size:
                raise ValueError("its arrays are compressed")
            arrays = dict(archive)
        text = arrays["claim"].tobytes().decode()
        claim = json.loads(text, object_hook=lambda node: _value(node, arrays))
        (X, y, sample_weight), certificate = claim["data"], claim["certificate"]
        if claim["format"] != _FORMAT or not isinstance(certificate, dict):
            raise ValueError(f"its format is {claim['format']!r:.60}")
    except Exception as error:  # a file can be wrong in more ways than can be named
        raise ProofFileError(f"{path} is no proof file: {type(error).__name__}: {error}") from None
    return certificate, X, y, sample_weight


def _plain(value: Any, arrays: dict[str, Any], name: str) -> Any:
    """A value as JSON, in which arrays are named."""
    is_array = isinstance(value, np.ndarray) and value.dtype.kind in "fiubU"
    if isinstance(value, (np.generic, np.ndarray)) and not is_array:
        value = value.tolist()
    if value is None or isinstance(value, (bool, float, str)):
        return value
    if isinstance(value, int):  # decimals have a limit, and cost the square of their length
        return {"$integer": hex(value)}
    if is_array:
        arrays[key := f"a{len(arrays)}"] = value
        return {"$array": key}
    if isinstance(value, (tuple, list)):
        return [_plain(part, arrays, name) for part in value]
    if sp.issparse(value):
        M = sp.csr_array(value)
        return {"$sparse": _plain([M.data, M.indices, M.indptr, M.shape], arrays, name)}
    if type(value).__module__.startswith("trueline.") and not callable(value):
        value = parameters(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(part, arrays, str(key)) for key, part in value.items()}
    raise ProofFileError(f"{name}: a {type(value).__name__} is no plain data, which files hold.")


def _value(node: dict[str, Any], arrays: Any) -> Any:
    """What :func:`_plain` made a JSON object of."""
    if "$integer" in node:
        return int(node["$integer"], 16)
    if "$array" in node:
        return arrays[node["$array"]]
    if "$sparse" not in node:
        return node
    *parts, shape = node["$sparse"]
    matrix = sp.csr_array(tuple(parts), shape=tuple(shape))
    matrix.check_format(full_check=True)  # indices that are out of range would be followed
    return matrix
