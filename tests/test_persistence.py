"""Model files: what is saved comes back; what is odd is refused; nothing ever runs."""

import io
import json
import os
import pickle
import zipfile
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_regression

from trueline import (
    ConstantFeature,
    FourierFeatures,
    Interactions,
    OneVsOneClassifier,
    OneVsRestClassifier,
    OrthogonalPolynomialFeatures,
    OutputCodeClassifier,
    RadialBasisFeatures,
    RandomFourierFeatures,
    Ridge,
    RidgeClassifier,
    SequentialFeatureSelector,
    TableFeatures,
    load,
    save,
)
from trueline.certificates import Certificate
from trueline.errors import ModelFileError
from trueline.losses import Squared
from trueline.penalties import L2
from trueline.persistence import FORMAT, VERSION, known_classes, read, register
from trueline.persistence.codec import Decoder, Encoder
from trueline.persistence.registry import find_class, is_estimator

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1.0]
Y = X @ [1.0, -0.2, 3.0] + 0.1 * RNG.normal(size=40)

RECORDS = [cls for cls in known_classes().values() if is_dataclass(cls)]
# Kernels have parameters, but are no models. Estimators that are made of others have tests of their
# own.
OWN_TESTS = ["ChainedClassifiers", "ConstantPredictor", "Pipeline"]
ESTIMATORS = [
    cls
    for cls in known_classes().values()
    if issubclass(cls, BaseEstimator)
    and hasattr(cls, "predict")
    and "estimator" not in cls._get_param_names()
    and cls.__name__ not in OWN_TESTS
]
# Maps of numbers to numbers; tables and texts hold dictionaries of their reader's own types.
FEATURE_MAPS = [
    ConstantFeature(),
    FourierFeatures(harmonics=2),
    Interactions(),
    OrthogonalPolynomialFeatures(degree=3),
    RadialBasisFeatures(),
    RandomFourierFeatures(random_state=0),
]


def target_of(cls):
    """Y, labels for classifiers, or two targets for the estimators that fit several together."""
    if issubclass(cls, ClassifierMixin):
        return np.where(np.median(Y) < Y, "high", "low")
    if cls.__name__ in ("GammaRegressor", "PoissonRegressor"):
        return np.exp(Y / 4)
    return np.column_stack([Y, -Y]) if cls.__name__.startswith("MultiTask") else Y


def same(a, b):
    """Equal in value, type, dtype and memory layout, through all containers."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        layout = a.ndim < 2 or a.flags.f_contiguous == b.flags.f_contiguous
        if a.dtype == object:
            return a.shape == b.shape and all(same(p, q) for p, q in zip(a.flat, b.flat))
        return a.dtype == b.dtype and layout and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(p, q) for p, q in zip(a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, Enum):
        return a is b
    if is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if is_estimator(type(a)):
        return same(vars(a), vars(b))
    return a == b or (a != a and b != b)


def through(value):
    """A value encoded, written as JSON text, read and decoded."""
    encoder = Encoder()
    text = json.dumps(encoder.encode(value), allow_nan=False)
    return Decoder(encoder.arrays).decode(json.loads(text))


@pytest.fixture
def fitted(tmp_path):
    model = Ridge(alpha=0.5).fit(X, Y)
    return model, save(model, tmp_path / "m.trueline")


# --- what is saved comes back --------------------------------------------------------------------


# Parameters that scikit-learn wants to be said, as long as their defaults are about to change; and
# so many passes that nothing is left to be warned of.
SAID = {
    "Perceptron": {"max_iter": 20, "tol": None},
    "LogisticRegressionCV": {
        "l1_ratios": (0.0,),
        "scoring": "neg_log_loss",
        "use_legacy_attributes": False,
    },
}


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_every_estimator_comes_back(cls, tmp_path):
    model = cls(**SAID.get(cls.__name__, {})).fit(X, target_of(cls))
    again = load(save(model, tmp_path / "m.trueline"))
    assert same(vars(again), vars(model))
    assert again.predict(X).tobytes() == model.predict(X).tobytes()
    assert again.verify(X, target_of(cls))
    assert str(again.explain()) == str(model.explain())


@pytest.mark.parametrize("feature_map", FEATURE_MAPS, ids=lambda each: type(each).__name__)
def test_feature_maps_come_back(feature_map, tmp_path):
    fitted = clone(feature_map).fit(X)
    again = load(save(fitted, tmp_path / "m.trueline"))
    assert same(vars(again), vars(fitted))
    assert again.transform(X).tobytes() == fitted.transform(X).tobytes()
    assert list(again.get_feature_names_out()) == list(fitted.get_feature_names_out())


def test_maps_of_tables_with_texts_come_back(tmp_path):
    texts = [f"an opinion of {number} words that nobody has written before" for number in range(9)]
    table = pd.DataFrame({"opinion": texts})
    features = TableFeatures(columns={"opinion": "text"}).fit(table)
    again = load(save(features, tmp_path / "m.trueline"))
    assert np.array_equal(again.transform(table), features.transform(table))
    assert list(again.get_feature_names_out()) == list(features.get_feature_names_out())


def test_a_selector_comes_back(tmp_path):
    model = SequentialFeatureSelector(Ridge(), n_features_to_select=2).fit(X, Y)
    again = load(save(model, tmp_path / "m.trueline"))
    assert same(vars(again), vars(model))
    assert np.array_equal(again.transform(X), model.transform(X))
    assert str(again.explain()) == str(model.explain())


def test_a_selector_for_a_foreign_estimator_says_what_cannot_be_saved(tmp_path):
    from sklearn.linear_model import LinearRegression as Foreign

    model = SequentialFeatureSelector(Foreign(), n_features_to_select=2).fit(X, Y)
    with pytest.raises(ModelFileError, match=r"SequentialFeatureSelector\.estimator is a sklearn"):
        save(model, tmp_path / "m.trueline")


WRAPPERS = [
    OneVsRestClassifier(RidgeClassifier()),
    OneVsOneClassifier(RidgeClassifier(), coupling="likelihood"),
    OutputCodeClassifier(RidgeClassifier(), random_state=1),
    OutputCodeClassifier(RidgeClassifier(), code="sparse", random_state=0),
    OneVsRestClassifier(Ridge()),
]


@pytest.mark.parametrize("model", WRAPPERS, ids=str)
def test_a_multiclass_model_comes_back_with_its_parts(model, tmp_path):
    labels = np.array(["a", "b", "c"])[np.digitize(Y, np.quantile(Y, [0.3, 0.7]))]
    model = clone(model).fit(X, labels)
    again = load(save(model, tmp_path / "m.trueline"))
    assert same(vars(again), vars(model))
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert again.verify(X, labels)
    assert str(again.explain()) == str(model.explain())


def test_a_multiclass_model_with_a_constant_part_comes_back(tmp_path):
    indicators = np.column_stack([Y > 0, Y > np.median(Y), np.zeros(len(Y), bool)]).astype(int)
    with pytest.warns(UserWarning, match="Label not 2 is present in all training examples"):
        model = OneVsRestClassifier(RidgeClassifier()).fit(X, indicators)
    again = load(save(model, tmp_path / "m.trueline"))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.verify(X, indicators)


def test_a_multiclass_model_of_foreign_parts_says_what_cannot_be_saved(tmp_path):
    from sklearn.linear_model import LogisticRegression

    model = OneVsRestClassifier(LogisticRegression()).fit(X, Y > np.median(Y))
    with pytest.raises(ModelFileError, match=r"OneVsRestClassifier\.estimator is a sklearn"):
        save(model, tmp_path / "m.trueline")


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_partial_fit_goes_on(cls, tmp_path):
    if not hasattr(cls, "partial_fit"):
        pytest.skip("has no partial_fit")
    target = target_of(cls)
    seed = {"random_state": 0} if "random_state" in cls._get_param_names() else {}
    model = cls(**seed, **SAID.get(cls.__name__, {})).fit(X[:20], target[:20])
    again = load(save(model, tmp_path / "m.trueline"))
    again.partial_fit(X[20:], target[20:])
    model.partial_fit(X[20:], target[20:])
    assert again.predict(X).tobytes() == model.predict(X).tobytes()


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_unfitted_estimators_come_back(cls, tmp_path):
    again = load(save(cls(), tmp_path / "m.trueline"))
    assert same(vars(again), vars(cls()))


@pytest.mark.parametrize("cls", RECORDS, ids=lambda cls: cls.__name__)
def test_every_record_with_defaults_comes_back(cls):
    try:
        value = cls()
    except TypeError:
        pytest.skip("has no defaults: comes back as part of the estimators")
    assert same(through(value), value)


def test_several_targets_and_float32(tmp_path):
    X32 = X.astype(np.float32)
    model = Ridge(alpha=np.array([0.1, 2.0])).fit(X32, np.column_stack([Y, -Y]).astype(np.float32))
    again = load(save(model, tmp_path / "m.trueline"))
    assert again.coef_.dtype == model.coef_.dtype
    assert again.predict(X32).tobytes() == model.predict(X32).tobytes()


def test_names_extra_and_versions(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = Ridge().fit(frame, Y)
    file = read(save(model, tmp_path / "m.trueline", extra={"rows": 40, "levels": ("x", "y")}))
    assert file.model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert file.model.feature_names_in_.dtype == object
    assert file.extra == {"rows": 40, "levels": ("x", "y")}
    assert file.versions["numpy"] == np.__version__
    file.model.predict(frame)


def test_metadata_requests_come_back(tmp_path):
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        model = Ridge().set_fit_request(sample_weight="importance")
        again = load(save(model, tmp_path / "m.trueline"))
        assert again.get_metadata_routing().fit.requests == {"sample_weight": "importance"}


def test_shared_arrays_are_stored_once_and_stay_shared(tmp_path):
    model = Ridge()
    model.coef_ = model.again_ = np.arange(1000.0)
    again = load(save(model, tmp_path / "m.trueline"))
    assert again.coef_ is again.again_
    assert (tmp_path / "m.trueline").stat().st_size < 10_000


def test_the_same_model_gives_the_same_bytes(tmp_path):
    model = Ridge().fit(X, Y)
    a, b = save(model, tmp_path / "a"), save(load(save(model, tmp_path / "b")), tmp_path / "c")
    assert a.read_bytes() == b.read_bytes()


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.floats(width=32).map(np.float32),
    st.integers(0, 255).map(np.uint8),
    st.booleans().map(np.bool_),
)
arrays = st.one_of(
    st.lists(st.floats(), max_size=6).map(np.array),
    st.integers(0, 3).map(lambda n: np.asfortranarray(np.ones((n, 2), dtype=np.float32))),
    st.lists(st.text(st.characters(exclude_characters="\0"), max_size=3), min_size=1).map(
        lambda names: np.array(names, dtype=object)
    ),
    st.integers(-5, 5).map(lambda value: np.array(value)),
)
values = st.recursive(
    scalars | arrays,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(values)
def test_any_plain_value_comes_back(value):
    assert same(through(value), value)


# --- what cannot be saved is said when saving ----------------------------------------------------


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (print, r"Ridge\.alpha is a builtins\.builtin_function_or_method"),
        (np.random.RandomState(0), r"Ridge\.alpha is a numpy\.random"),
        ([1, {"deep": {1, 2}}], r"Ridge\.alpha\[1\]\['deep'\] is a builtins\.set"),
        (np.array([1, "2020-01-01"], dtype="datetime64[D]"), "datetime64"),
        (np.array([object()]), "object"),
    ],
)
def test_what_is_not_data_is_not_saved(tmp_path, value, message):
    with pytest.raises(ModelFileError, match=message):
        save(Ridge(alpha=value), tmp_path / "m.trueline")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("thing", [Ridge, None, L2(1.0), {"coef_": 1}])
def test_only_estimators_are_saved(tmp_path, thing):
    with pytest.raises(ModelFileError, match="Only estimators"):
        save(thing, tmp_path / "m.trueline")


def test_a_failed_save_leaves_the_old_file(tmp_path, fitted, monkeypatch):
    _, path = fitted
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        save(Ridge(), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize(
    ("former", "today"),
    [
        ("bayes.NormalInverseGamma", "bayesian.NormalInverseGamma"),
        ("halfspaces.Separability", "separation.Separability"),
        ("processes.Structure", "gaussian_process.Structure"),
    ],
)
def test_files_that_name_a_folder_as_it_was_called_before_are_read(former, today):
    assert find_class(former) is known_classes()[today]


def test_a_plan_is_read_whose_fallbacks_have_their_former_name():
    plan = Ridge().fit(*make_regression(30, 3, random_state=0))._plan
    encoder = Encoder()
    node = encoder.encode(plan)
    node["fields"]["successors"] = node["fields"].pop("fallbacks")
    assert Decoder(encoder.arrays).decode(node) == plan


def test_registering():
    @register
    @dataclass(frozen=True)
    class Recipe:
        degree: int

    assert same(through(Recipe(3)), Recipe(3))
    with pytest.raises(TypeError, match="cannot be registered"):
        register(int)


# --- what is odd is refused ----------------------------------------------------------------------


def npy(array, **options):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, **options)
    return out.getvalue()


def forge(path, header=None, entries=None, compression=zipfile.ZIP_STORED):
    """A zip archive with this header and these entries."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        if header is not None:
            text = header if isinstance(header, str) else json.dumps(header)
            archive.writestr("model.json", text)
        for name, data in (entries or {}).items():
            archive.writestr(name, data)
    return path


def header_with(model, arrays=0, **changes):
    return {
        "format": FORMAT,
        "version": VERSION,
        "made_by": {},
        "model": model,
        "extra": {"$": "dict", "items": []},
        "arrays": arrays,
        **changes,
    }


def ridge(params=None, fitted=None, **changes):
    name = next(name for name, cls in known_classes().items() if cls is Ridge)
    return {
        "$": "estimator",
        "class": name,
        "params": params or {},
        "fitted": fitted or {},
    } | changes


def test_the_forged_header_is_accepted_when_it_is_right(tmp_path):
    assert isinstance(load(forge(tmp_path / "m", header_with(ridge()))), Ridge)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("not json", "damaged"),
        ("[]", "does not say"),
        ("[" * 100_000, "nested too deeply"),
        (header_with(ridge(), format="other"), "does not say"),
        (header_with(ridge(), version=VERSION + 1), "pip install --upgrade trueline"),
        (header_with(ridge(), version="1"), "version is '1'"),
        (header_with(ridge(), version=True), "version is True"),
        (header_with(ridge(), arrays=3), "should hold 3 arrays, not 0"),
        (header_with(ridge(), extra=[]), "no estimator"),
        (header_with(None), "no estimator"),
        (header_with({"$": "record", "class": "penalties.L2", "fields": {}}), "no estimator"),
        (header_with(ridge(**{"class": "os.system"})), r"names the class 'os.system'"),
        (header_with(ridge(**{"class": "subprocess.Popen"})), "names the class"),
        (header_with(ridge(**{"class": ["a"]})), "names the class"),
        (header_with(ridge(**{"class": "penalties.L2"})), "is not an estimator"),
        (header_with({"$": "call", "function": "eval"}), "unknown kind of value, 'call'"),
        (header_with({"$": ["x"]}), "unknown kind of value"),
        (header_with({"no": "tag"}), "unknown kind of value, None"),
        (header_with(ridge({"nonsense": 1})), "does not make sense"),
        (header_with(ridge({"alpha": "much"})), r"alpha of Ridge must be a float .*, not a str"),
        (header_with(ridge(fitted={"predict": 1})), "'predict' is not a name"),
        (header_with(ridge(fitted={"__class__": 1})), "'__class__' is not a name"),
        (header_with(ridge(fitted={"a b": 1})), "'a b' is not a name"),
        (header_with(ridge(fitted={"coef_": "many"})), "coef_ cannot be of type str"),
        (header_with(ridge(fitted={"intercept_": None})), "intercept_ cannot be of type None"),
        (header_with(ridge(fitted={"_certificate": 1})), "_certificate cannot be of type int"),
        (header_with(ridge(fitted={"certificate_": 1})), "'certificate_' is not a name"),
        (header_with(ridge(fitted={"a_": {"$": "array", "index": 0}})), "not there, 0"),
        (header_with(ridge(fitted={"a_": {"$": "array", "index": -1}})), "not there, -1"),
        (header_with(ridge(fitted={"a_": {"$": "float", "value": "1e9"}})), "make sense"),
        (header_with(ridge(fitted={"a_": {"$": "scalar", "dtype": "object", "value": 1}})), "make"),
        (
            header_with(ridge(fitted={"a_": {"$": "objects", "shape": [9], "items": []}})),
            "does not have the size",
        ),
        (
            header_with(ridge(fitted={"a_": {"$": "member", "class": "moments.Moments"}})),
            "names the class",
        ),
        (
            header_with(ridge(requests={"$": "dict", "items": [["__init__", {}]]})),
            "unknown kind of value|takes metadata",
        ),
        ('{"format": NaN}', "holds NaN"),
        ('{"format": 1, "format": 2}', "repeats a key"),
    ],
)
def test_odd_headers(tmp_path, header, message):
    with pytest.raises(ModelFileError, match=message):
        load(forge(tmp_path / "m", header))


@pytest.mark.parametrize(
    ("cls", "contents", "message"),
    [
        ("penalties.L2", {"alpha": "much"}, r"L2\.alpha cannot be of type str"),
        ("penalties.L2", {"alpha": -1.0}, "alpha must be finite"),
        ("penalties.L2", {"beta": 1.0}, "no field 'beta'"),
        ("penalties.NonNegative", {"base": 3}, r"NonNegative\.base cannot be of type int"),
        ("losses.Huber", {"delta": None}, r"Huber\.delta cannot be of type NoneType"),
        ("moments.Moments", {"count": 1}, "missing"),
        ("solution.Status", {}, "is not a record"),
    ],
)
def test_odd_records(tmp_path, cls, contents, message):
    node = {"$": "record", "class": cls, "fields": contents}
    with pytest.raises(ModelFileError, match=message):
        load(forge(tmp_path / "m", header_with(ridge(fitted={"part_": node}))))


class Trap:
    """Its pickle creates a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_pickles_are_refused_and_never_loaded(tmp_path):
    sprung = tmp_path / "sprung"
    trap = np.array([Trap(sprung)], dtype=object)
    (tmp_path / "pickle").write_bytes(pickle.dumps(Trap(sprung)))
    with pytest.raises(ModelFileError, match="not a complete model file"):
        load(tmp_path / "pickle")
    node = header_with(ridge(fitted={"a_": {"$": "array", "index": 0}}), arrays=1)
    entries = {"arrays/0.npy": npy(trap, allow_pickle=True)}
    with pytest.raises(ModelFileError, match="holds object"):
        load(forge(tmp_path / "m", node, entries))
    entries = {"arrays/0.npy": pickle.dumps(Trap(sprung))}
    with pytest.raises(ModelFileError, match="damaged"):
        load(forge(tmp_path / "m", node, entries))
    assert not sprung.exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (npy(np.ones(4))[:-8], "does not have the size"),
        (npy(np.ones(4)) + b"more", "does not have the size"),
        (npy(np.ones(4)).replace(b"(4,)", b"(-4,)"), "damaged|does not have the size"),
        (npy(np.ones(4)).replace(b"(4,), }     ", b"(4000000000,), }"), "damaged|size it claims"),
        (npy(np.zeros(1, dtype=[("a", "f8")])), "not numbers or strings"),
        (npy(np.zeros(1, dtype="M8[s]")), "not numbers or strings"),
        (b"\x93NUMPY\x09\x00", "damaged|version"),
        (b"", "damaged"),
        (npy(np.array(["ab"])).replace("ab".encode("utf-32-le"), b"\xff" * 8), "not Unicode"),
    ],
)
def test_odd_arrays(tmp_path, data, message):
    node = header_with(ridge(), arrays=1)
    with pytest.raises(ModelFileError, match=message):
        load(forge(tmp_path / "m", node, {"arrays/0.npy": data}))


@pytest.mark.parametrize(
    "name", ["../evil.npy", "/etc/passwd", "arrays/1.npy", "arrays/../x", "evil.py", "arrays/"]
)
def test_odd_entries(tmp_path, name):
    path = forge(tmp_path / "m", header_with(ridge(), arrays=1), {name: npy(np.ones(1))})
    with pytest.raises(ModelFileError, match="does not belong there"):
        load(path)


def test_compressed_encrypted_doubled_and_headless_archives(tmp_path):
    bomb = {"arrays/0.npy": npy(np.zeros(1_000_000))}
    with pytest.raises(ModelFileError, match="compressed"):
        load(forge(tmp_path / "m", header_with(ridge(), arrays=1), bomb, zipfile.ZIP_DEFLATED))
    with pytest.raises(ModelFileError, match="without model.json"):
        load(forge(tmp_path / "m", None, {"arrays/0.npy": b""}))
    with zipfile.ZipFile(tmp_path / "d", "w") as twice:
        twice.writestr("model.json", "{}")
        with pytest.warns(UserWarning, match="Duplicate"):
            twice.writestr("model.json", "{}")
    with pytest.raises(ModelFileError, match="same name"):
        load(tmp_path / "d")


def test_entries_that_overlap_cannot_claim_more_than_the_file(tmp_path):
    path = forge(tmp_path / "m", header_with(ridge(), arrays=1), {"arrays/0.npy": npy(np.ones(9))})
    data = bytearray(path.read_bytes())
    start = data.rindex(b"PK\x01\x02")
    data[start + 20 : start + 28] = (1 << 30).to_bytes(4, "little") * 2  # both sizes
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match="larger than the file"):
        load(path)


def test_missing_files_and_folders_are_ordinary_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.trueline")
    with pytest.raises(FileNotFoundError, match="no such folder"):
        save(Ridge(), tmp_path / "nowhere" / "m.trueline")


def test_truncated_files(fitted, tmp_path):
    data = fitted[1].read_bytes()
    for length in range(0, len(data), 97):
        (tmp_path / "cut").write_bytes(data[:length])
        with pytest.raises(ModelFileError):
            load(tmp_path / "cut")


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_changed_bytes_give_a_model_or_a_model_file_error(fitted, tmp_path, data):
    original = fitted[1].read_bytes()
    changed = bytearray(original)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(original) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "changed").write_bytes(changed)
    try:
        model = load(tmp_path / "changed")
    except ModelFileError:
        return
    # The archive's checksums cover everything that counts: what loads is what was saved.
    assert same(vars(model), vars(fitted[0]))


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_changed_headers_with_right_checksums(fitted, tmp_path, data):
    """Beyond accidents: the header is changed and the archive written anew around it."""
    with zipfile.ZipFile(fitted[1]) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    text = entries.pop("model.json").decode()
    start = data.draw(st.integers(0, len(text) - 1))
    stop = data.draw(st.integers(start, min(len(text), start + 8)))
    insert = data.draw(st.text('{}[]",:$0-9.eEnulltrue_\\', max_size=6))
    try:
        model = load(forge(tmp_path / "changed", text[:start] + insert + text[stop:], entries))
    except ModelFileError:
        return
    # A number or a name may be another one now, but it is a model of a known class.
    assert type(model).__module__.startswith("trueline.")


def test_a_changed_coefficient_loads_but_does_not_verify(fitted, tmp_path):
    model, _ = fitted
    model.coef_ = model.coef_ * 1.001
    again = load(save(model, tmp_path / "forged"))
    assert not again.verify(X, Y)


def test_certificates_come_back_with_their_parts(fitted):
    again = load(fitted[1]).certificate_
    assert isinstance(again, Certificate)
    assert again.loss == Squared()
    assert again.verify(X, Y)
