"""Model files made to do harm: a model or a ``ModelFileError``, at a cost of the file's size."""

import io
import json
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

from trueline import (
    SVC,
    GaussianProcessRegressor,
    OneVsRestClassifier,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    load,
    save,
)
from trueline.errors import ModelFileError
from trueline.persistence import FORMAT, VERSION

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.1 * RNG.normal(size=24)
LABELS = np.array(["a", "b", "c"])[np.digitize(Y, [-1.0, 1.0])]


def npy(array):
    out = io.BytesIO()
    np.lib.format.write_array(out, array)
    return out.getvalue()


def npy_claiming(descr, shape, data=b""):
    """A .npy file whose first lines say what they like."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        out, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    return out.getvalue() + data


def forge(path, text, arrays=()):
    """A model file with this header and these .npy files, its checksums right."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.json", text)
        for index, data in enumerate(arrays):
            archive.writestr(f"arrays/{index}.npy", data)
    return path


def header(value, arrays=0):
    """The text of a header: a model that has this JSON as a fitted attribute."""
    return (
        f'{{"format":"{FORMAT}","version":{VERSION},"made_by":{{}},"model":{{"$":"estimator",'
        f'"class":"estimators.Ridge","params":{{}},"fitted":{{"a_":{value}}}}},'
        f'"extra":{{"$":"dict","items":[]}},"arrays":{arrays}}}'
    )


def nested(before, middle, after, depth):
    return before * depth + middle + after * depth


# --- cost ----------------------------------------------------------------------------------------

VALUES = {
    "integer": "7",
    "float": "0.125",
    "string": '"ab"',
    "list": "[]",
    "nested list": "[[1],[2]]",
    "infinity": '{"$":"float","value":"inf"}',
    "tuple": '{"$":"tuple","items":[]}',
    "dict": '{"$":"dict","items":[["a",1]]}',
    "set": '{"$":"set","items":["a"]}',
    "scalar": '{"$":"scalar","dtype":"float64","value":1.0}',
    "objects": '{"$":"objects","shape":[1],"items":["a"]}',
    "array": '{"$":"array","index":0}',
    "member": '{"$":"member","class":"solution.Status","name":"SOLVED"}',
    "record": '{"$":"record","class":"penalties.L2","fields":{"alpha":1.0}}',
    "record of a record": '{"$":"record","class":"penalties.NonNegative","fields":{"base":'
    '{"$":"record","class":"penalties.L2","fields":{"alpha":{"$":"array","index":0}}}}}',
    "estimator": '{"$":"estimator","class":"estimators.Ridge","params":{"alpha":1.0},"fitted":{}}',
}


def with_many(path, value, size):
    """A file of about this size that holds a value over and over."""
    count = size // (len(value) + 1)
    return forge(path, header(f"[{','.join([value] * count)}]", arrays=1), [npy(np.ones(1))])


def calls_during(action):
    """The number of functions that are called, in Python and in C."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("kind", VALUES)
def test_work_is_linear_in_the_size_of_the_header(tmp_path, kind):
    small = with_many(tmp_path / "small", VALUES[kind], 10_000)
    large = with_many(tmp_path / "large", VALUES[kind], 40_000)
    load(small)  # caches are filled now
    base = calls_during(lambda: load(forge(tmp_path / "m", header("0"))))
    small_work = calls_during(lambda: load(small)) - base
    large_work = calls_during(lambda: load(large)) - base
    assert large_work <= 4.5 * small_work + 200
    assert large_work <= 2 * 40_000


def test_work_is_linear_in_the_number_of_attributes_and_arrays(tmp_path):
    def many(count):
        fitted = ",".join(f'"a{i}_":{{"$":"array","index":{i}}}' for i in range(count))
        text = header("0", arrays=count).replace('"a_":0', fitted)
        return forge(tmp_path / str(count), text, [npy(np.ones(1))] * count)

    small, large = many(100), many(400)
    load(small)
    small_work, large_work = (calls_during(lambda p=p: load(p)) for p in (small, large))
    assert large_work <= 4.2 * small_work


@pytest.mark.parametrize("kind", VALUES)
def test_memory_is_a_small_multiple_of_the_size_of_the_file(tmp_path, kind):
    path = with_many(tmp_path / "m", VALUES[kind], 300_000)
    load(with_many(tmp_path / "small", VALUES[kind], 1000))
    tracemalloc.start()
    try:
        load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 32 * path.stat().st_size


def test_arrays_take_at_most_three_times_their_size_while_they_are_read(tmp_path):
    model = Ridge()
    model.a_ = np.zeros(1_000_000)
    path = save(model, tmp_path / "m")
    tracemalloc.start()
    try:
        load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 3.1 * path.stat().st_size


MERSENNE = 2**61 - 1  # integers modulo this are their own hashes
CLASSIFIER = '{"$":"estimator","class":"estimators.OneVsRestClassifier","fitted":{},"params":{'
COSTLY = {
    "keys of one hash": (
        f'{{"$":"dict","items":[{",".join(f"[{i * MERSENNE},0]" for i in range(5000))}]}}',
        "has 5000 keys that are not strings",
    ),
    "keys in tuples": (
        '{"$":"dict","items":['
        + ",".join(f'[{{"$":"tuple","items":["a",{i * MERSENNE}]}},0]' for i in range(5000))
        + "]}",
        "has 5000 keys that are not strings",
    ),
    "a set of one hash": (
        f'{{"$":"set","items":[{",".join(f"{i * MERSENNE}" for i in range(5000))}]}}',
        "something else than strings",
    ),
    "sizes of many digits": (
        f'{{"$":"objects","shape":[{",".join(["9" * 4000] * 2000)}],"items":[]}}',
        "does not have the size it claims",
    ),
    "an estimator where a number should be": (
        '{"$":"estimator","class":"estimators.Ridge","fitted":{},"params":{"alpha":'
        + nested(f'{CLASSIFIER}"estimator":', VALUES["estimator"], "}}", 60)
        + "}}",
        "must be a float .* not a OneVsRestClassifier",
    ),
    "an integer of a million digits": ("1" * 1_000_000, "integer|damaged"),
    "lists in lists": (nested("[", "", "]", 500_000), "nested too deeply"),
    "fewer lists in lists": (nested("[", "", "]", 150), "nested too deeply"),
    "objects in objects": (nested('{"a":', "1", "}", 500_000), "nested too deeply"),
    "tuples in tuples": (nested('{"$":"tuple","items":[', "", "]}", 60), "nested too deeply"),
    "penalties in penalties": (
        nested(
            '{"$":"record","class":"penalties.NonNegative","fields":{"base":',
            '{"$":"record","class":"penalties.L2","fields":{}}',
            "}}",
            120,
        ),
        "nested too deeply",
    ),
    "a long tag": (f'{{"$":"{"x" * 1_000_000}"}}', "unknown kind of value"),
    "a long class": (f'{{"$":"record","class":"{"x" * 1_000_000}"}}', "names the class"),
    "a long number as text": (
        f'{{"$":"scalar","dtype":"float64","value":"{"1" * 1_000_000}"}}',
        "not a number",
    ),
    "a list as number": ('{"$":"scalar","dtype":"float64","value":[1.0]}', "not a number"),
    "two values of a key": ('{"$":"dict","items":[["a",1],["a",2]]}', "repeats a key"),
    "two values of a key that is equal": ('{"$":"dict","items":[[1,1],[true,2]]}', "repeats a key"),
    "a dictionary of words": ('{"$":"dict","items":["ab","cd"]}', "not a key and a value"),
    "a tuple of a text": ('{"$":"tuple","items":"abc"}', "are not a list"),
    "a negative size": ('{"$":"objects","shape":[-1,-2],"items":["a","b"]}', "size it claims"),
    "no size": ('{"$":"objects","shape":[],"items":[]}', "size it claims"),
}


@pytest.mark.parametrize("kind", COSTLY)
def test_costly_headers_are_refused_at_once_and_in_a_few_words(tmp_path, kind):
    value, message = COSTLY[kind]
    path = forge(tmp_path / "m", header(value))
    with pytest.raises(ModelFileError, match=message) as caught:
        load(path)
    assert len(str(caught.value)) < 700


def test_long_integers_are_refused_where_pythons_limit_was_lifted(tmp_path):
    path = forge(tmp_path / "m", header("1" * 1_000_000))
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with pytest.raises(ModelFileError, match="an integer of 1000000 digits"):
            load(path)
    finally:
        sys.set_int_max_str_digits(before)


def test_an_array_is_not_looked_at_for_every_record_that_names_it(tmp_path):
    record = '{"$":"record","class":"penalties.L2","fields":{"alpha":{"$":"array","index":0}}}'
    text = header(f"[{','.join([record] * 2000)}]", arrays=1)
    with pytest.raises(ModelFileError, match="the same arrays over and over"):
        load(forge(tmp_path / "m", text, [npy(np.ones(20_000, dtype=np.int8))]))
    assert len(load(forge(tmp_path / "m", text, [npy(np.ones(100))])).a_) == 2000


@pytest.mark.parametrize(
    "data",
    [
        npy_claiming("<U0", (10**11,)),
        npy_claiming("<f8", (10**11,)),
        npy_claiming("<f8", (0, 10**30)),
        npy_claiming("<f8", (-1, -4), bytes(32)),
        npy_claiming("<f8", (2**62, 2**62), bytes(32)),
        npy_claiming("|V0", (10**11,)),
        npy_claiming("<f8", (1,) * 100, bytes(8)),
        npy_claiming([("a", "<f8")], (1,), bytes(8)),
        npy_claiming([("a", "<f8", (10**9,))], (0,)),
        npy_claiming("<f8", ("x",), bytes(8)),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 100,
        b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 0xFFFF,
        b"\x93NUMPY\x01\x00\x10\x27" + b"-" * 9999 + b"1",
    ],
)
def test_arrays_that_claim_nonsense(tmp_path, data):
    path = forge(tmp_path / "m", header('{"$":"array","index":0}', arrays=1), [data])
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_archives_in_archives_and_entries_that_share_their_bytes(tmp_path):
    """Sizes that add up to more than the file are refused, wherever the entries point."""
    path = forge(tmp_path / "m", header("0", arrays=50), [npy(np.zeros(1000))] * 50)
    data = path.read_bytes()
    first = data.index(b"PK\x01\x02", data.rindex(b"model.json"))
    # Every array is said to be where the first is; then also to reach to the end of the file.
    positions = [
        i for i in range(first, len(data) - 46) if data[i : i + 4] == b"PK\x01\x02" and i > first
    ]
    moved = bytearray(data)
    for position in positions:
        moved[position + 42 : position + 46] = data[positions[0] + 42 : positions[0] + 46]
    path.write_bytes(moved)
    with pytest.raises(ModelFileError):
        load(path)
    for position in positions:
        moved[position + 20 : position + 28] = len(data).to_bytes(4, "little") * 2
    path.write_bytes(moved)
    with pytest.raises(ModelFileError, match="larger than the file"):
        load(path)


# --- what would not be loaded is not saved -------------------------------------------------------


def holding(value):
    model = Ridge()
    model.a_ = value
    return model


def deep_list(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def test_a_list_that_holds_itself_is_not_saved(tmp_path):
    endless = []
    endless.append(endless)
    with pytest.raises(ModelFileError, match="or holds itself"):
        save(holding(endless), tmp_path / "m")


@pytest.mark.parametrize(
    ("most", "too_much"),
    [
        (deep_list(97), deep_list(101)),
        (10**3800, 10**4300),
        (-(10**3800), -(10**4300)),
        (dict.fromkeys(range(1000)), dict.fromkeys(range(1001))),
        (dict.fromkeys(map(str, range(3000))), dict.fromkeys(map(float, range(3000)))),
        (
            dict.fromkeys((str(i), "a") for i in range(3000)),
            dict.fromkeys((str(i), 0) for i in range(3000)),
        ),
    ],
    ids=["depth", "integer", "negative integer", "integers as keys", "strings", "tuples"],
)
def test_limits_are_the_same_on_both_sides(tmp_path, most, too_much):
    assert load(save(holding(most), tmp_path / "m")).a_ == most
    with pytest.raises(ModelFileError):
        save(holding(too_much), tmp_path / "m")


def test_a_header_that_is_too_long_is_not_saved(tmp_path, monkeypatch):
    from trueline.persistence import archive

    monkeypatch.setattr(archive, "_LONGEST_HEADER", 10_000)
    with pytest.raises(ModelFileError, match="at most 10000"):
        save(holding("a" * 10_000), tmp_path / "m")


# --- fuzzing -------------------------------------------------------------------------------------

MODELS = {
    "ridge": lambda: Ridge(alpha=0.5).fit(X, Y),
    "quantiles": lambda: QuantileRegressor(quantile=[0.25, 0.75], alpha=0.1).fit(X, Y),
    "classes": lambda: OneVsRestClassifier(RidgeClassifier()).fit(X, LABELS),
    "svc": lambda: SVC().fit(X, LABELS == "a"),
    "process": lambda: GaussianProcessRegressor().fit(X, Y),
}


@pytest.fixture(scope="module", params=MODELS)
def original(request, tmp_path_factory):
    """The bytes of a file and the parts it is made of."""
    path = save(MODELS[request.param](), tmp_path_factory.mktemp("original") / "m")
    with zipfile.ZipFile(path) as archive:
        entries = [archive.read(name) for name in archive.namelist()]
    return path.read_bytes(), entries[0].decode(), entries[1:]


def outcome(path):
    """Whether a file gave a model; anything but a model or a ``ModelFileError`` fails the test."""
    try:
        model = load(path)
    except ModelFileError:
        return False
    assert type(model).__module__.startswith("trueline.")
    return True


def test_files_that_end_early_are_refused(original, tmp_path):
    data, _, _ = original
    for end in range(0, len(data), len(data) // 300):
        (tmp_path / "cut").write_bytes(data[:end])
        assert not outcome(tmp_path / "cut"), end


def test_a_file_that_ends_at_any_byte_is_refused(tmp_path):
    data = save(holding(np.arange(3.0)), tmp_path / "m").read_bytes()
    for end in range(len(data)):
        (tmp_path / "cut").write_bytes(data[:end])
        assert not outcome(tmp_path / "cut"), end


def test_bytes_that_are_changed_moved_or_repeated(original, tmp_path):
    data, _, _ = original
    rng = np.random.default_rng(1)
    path = tmp_path / "changed"
    for _ in range(500):
        changed = bytearray(data)
        for _ in range(rng.integers(1, 4)):
            i, j, k = sorted(rng.integers(0, len(data), 3))
            match rng.integers(5):
                case 0:
                    changed[i] ^= 1 << rng.integers(8)
                case 1:
                    changed[i : i + 4] = rng.choice([0, 1, 0x7F, 0xFF], 4).astype("u1").tobytes()
                case 2:
                    changed[i : i + (j - i) % 64] = b""
                case 3:
                    changed[k:k] = changed[i : i + (j - i) % 512]
                case 4:
                    changed[i : i + (k - j) % 512] = changed[j:k][:512]
        path.write_bytes(changed)
        outcome(path)


def places(node, path=()):
    """The places of all values in a JSON tree."""
    yield path
    if isinstance(node, dict | list):
        for key, item in node.items() if isinstance(node, dict) else enumerate(node):
            yield from places(item, (*path, key))


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


ODD = [
    *(None, True, 0, -1, 1.5, 1e308, 10**30, -(2**63), "", "x", [], {}, [[]]),
    *({"$": "float", "value": value} for value in ("nan", "inf", "-inf")),
    *({"$": "array", "index": index} for index in (0, 1, 2, 5)),
    {"$": "objects", "shape": [1], "items": [None]},
    {"$": "scalar", "dtype": "float32", "value": 1e300},
    {"$": "tuple", "items": [1, {"$": "float", "value": "nan"}]},
    {"$": "dict", "items": [[None, 1]]},
    {"$": "set", "items": ["a"]},
    {"$": "record", "class": "penalties.L2", "fields": {}},
    {"$": "estimator", "class": "estimators.Ridge", "params": {}, "fitted": {}},
    {"$": "type", "dtype": "float64"},
]


@pytest.mark.parametrize("rounds", [100, pytest.param(500, marks=pytest.mark.slow)])
def test_headers_with_parts_replaced_swapped_and_missing(original, rounds, tmp_path):
    _, text, arrays = original
    rng = np.random.default_rng(2)
    spots = [path for path in places(json.loads(text)) if path]
    loaded = 0
    for _ in range(rounds):
        tree = json.loads(text)
        for _ in range(rng.integers(1, 3)):
            path, other = (spots[i] for i in rng.integers(0, len(spots), 2))
            try:
                parent, value = at(tree, path[:-1]), at(tree, other)
                match rng.integers(3):
                    case 0:
                        parent[path[-1]] = ODD[rng.integers(len(ODD))]
                    case 1:
                        parent[path[-1]] = json.loads(json.dumps(value))
                    case 2:
                        del parent[path[-1]]
            except (KeyError, IndexError, TypeError):  # an earlier change took the place away
                continue
        loaded += outcome(forge(tmp_path / "m", json.dumps(tree), arrays))
    assert 0 < loaded < rounds  # both happen


@pytest.mark.parametrize("rounds", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_arrays_with_other_contents_and_in_other_places(original, rounds, tmp_path):
    _, text, arrays = original
    rng = np.random.default_rng(3)
    for _ in range(rounds):
        changed = list(arrays)
        i, j = rng.integers(0, len(arrays), 2)
        match rng.integers(3):
            case 0:
                changed[i], changed[j] = changed[j], changed[i]
            case 1:
                part = bytearray(changed[i])
                part[rng.integers(len(part))] = rng.integers(256)
                changed[i] = bytes(part)
            case 2:
                options = [np.nan, np.inf, [], [[]], "a", 1j, True, -1, [[np.nan] * 3]]
                changed[i] = npy(np.array(options[rng.integers(len(options))]))
        outcome(forge(tmp_path / "m", text, changed))
