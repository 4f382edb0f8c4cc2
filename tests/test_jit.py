"""The decorator's promises: light imports, kernels inside kernels, one compilation per machine."""

import ast
import gc
import io
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import trueline.numerics.jit as jit
from trueline.numerics import machine_code

SOURCES = {
    "__init__.py": "",
    "jit.py": """
        from pathlib import Path

        from trueline.numerics.jit import Compiler

        compiler = Compiler(Path(__file__).parent, "toy")
        kernel = compiler.kernel
        """,
    "helper.py": """
        from toy.jit import kernel

        @kernel
        def shift(a):
            return a + 1.0
        """,
    "main.py": """
        from toy import helper
        from toy.helper import shift
        from toy.jit import kernel

        @kernel(reassociate=True)
        def total(x):
            s = 0.0
            for i in range(x.shape[0]):
                s += shift(x[i])
            return s

        @kernel
        def outer(x):
            return helper.shift(total(x)) / x[0]

        @kernel
        def factorial(n):
            if n <= 1:
                return 1
            return n * factorial(n - 1)

        @kernel
        def add_ones(x, times):
            for _ in range(times):
                for i in range(x.shape[0]):
                    x[i] = shift(x[i])
            return x[0], x.shape[0] > 1, times

        @kernel
        def inverse(n):
            return 1.0 / n
        """,
}

# What every run prints. The values asserted below are those of x = (2, 3):
#     outer(x) = shift(shift(2) + shift(3)) / 2
REPORT = """
import json, pickle, sys
import numpy as np
from toy import helper, main
from toy.jit import compiler
report = {"numba_at_import": "numba" in sys.modules}
report["value"] = main.outer(np.array([2.0, 3.0]))
report["single"] = float(main.outer(np.array([2.0, 3.0], dtype=np.float32)))
report["inner"] = [repr(main.total), repr(helper.shift)]
report["factorial"] = main.factorial(5)
report["by_zero"] = main.outer(np.array([0.0])) == np.inf
report["same_after_pickling"] = pickle.loads(pickle.dumps(main.outer)) is main.outer
report["hits"] = sum(main.outer.stats.cache_hits.values())
report["misses"] = sum(main.outer.stats.cache_misses.values())
report["folder"] = str(compiler.cache_folder())
print(json.dumps(report))
"""
PLAIN_VALUE = ((2 + 1) + (3 + 1) + 1) / 2
EDITED_VALUE = ((2 + 10) + (3 + 10) + 10) / 2


class Toy:
    """A package on disk that uses the decorator, run in processes of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cache = path / "cache"

    def write_all(self) -> None:
        (self.path / "toy").mkdir()
        for name, text in SOURCES.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        lines = [line.removeprefix(" " * 8) for line in text.splitlines()]
        (self.path / "toy" / name).write_text("\n".join(lines) + "\n")

    def run(self, script: str = REPORT, **switches: str) -> dict:
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TRUELINE_", "NUMBA_", "COV_"))
        }
        package_parent = str(Path(jit.__file__).parents[2])
        environment = clean | {
            "PYTHONPATH": os.pathsep.join([str(self.path), package_parent]),
            "TRUELINE_CACHE_DIR": str(self.cache),
            "TRUELINE_COMPILE": "always",
            **switches,
        }
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A toy package that has run once, and its report."""
    toy = Toy(tmp_path_factory.mktemp("compiled"))
    toy.write_all()
    return toy, toy.run()


@pytest.fixture
def toy(tmp_path, compiled):
    """A copy of the compiled toy, cache included: the cache does not depend on the place."""
    shutil.copytree(compiled[0].path, tmp_path, dirs_exist_ok=True)
    return Toy(tmp_path)


def edit_helper(toy):
    toy.write("helper.py", SOURCES["helper.py"].replace("a + 1.0", "a + 10.0"))


def test_importing_the_package_does_not_import_numba(toy):
    imports = "import json, sys, trueline, trueline.numerics.jit"
    script = f"{imports}; print(json.dumps('numba' in sys.modules))"
    assert toy.run(script) is False


def test_first_process_compiles_at_the_first_call(compiled):
    report = compiled[1]
    assert not report["numba_at_import"]
    assert report["value"] == report["single"] == PLAIN_VALUE
    assert report["factorial"] == 120  # a kernel that calls itself
    assert report["by_zero"]  # x / 0 is infinite, as in NumPy
    assert report["same_after_pickling"]
    assert (report["hits"], report["misses"]) == (0, 2)


def test_second_process_loads_instead_of_compiling(toy):
    report = toy.run()
    assert report["value"] == report["single"] == PLAIN_VALUE
    assert (report["hits"], report["misses"]) == (2, 0)
    # The loaded code contains the kernels it calls: these are not even built.
    assert all("not compiled yet" in inner for inner in report["inner"])


def test_kernels_inside_others_take_no_place_on_disk(compiled):
    names = {path.name.split("-")[0] for path in compiled[0].cache.rglob("*.nbc")}
    assert names == {"toy.main.outer", "toy.main.factorial"}


@pytest.mark.parametrize("is_on", [True, False])
def test_the_search_for_garbage_rests_while_compiling_and_is_then_as_before(is_on):
    was_on = gc.isenabled()
    try:
        (gc.enable if is_on else gc.disable)()
        with jit.no_garbage_collection():
            assert not gc.isenabled()
        assert gc.isenabled() == is_on
    finally:
        (gc.enable if was_on else gc.disable)()


def test_editing_a_helper_in_another_file_is_seen(toy, compiled):
    edit_helper(toy)
    edited = toy.run()
    assert edited["value"] == EDITED_VALUE
    assert edited["hits"] == 0
    assert Path(edited["folder"]).name != Path(compiled[1]["folder"]).name

    toy.write("helper.py", SOURCES["helper.py"])
    back = toy.run()
    assert back["value"] == PLAIN_VALUE
    assert back["misses"] == 0


def test_sources_edited_after_import_are_never_cached(toy):
    script = f"""
import os, time
from toy import main
later = time.time() + 5
os.utime(main.__file__, (later, later))
{REPORT}"""
    report = toy.run(script)
    assert report["value"] == PLAIN_VALUE
    assert report["folder"] == "None"
    assert report["hits"] == 0


def test_damaged_file_is_compiled_again(toy):
    files = list(toy.cache.glob("toy/*/*.nbc"))
    for path in files:
        path.write_bytes(path.read_bytes()[:100])
    report = toy.run()
    assert report["value"] == PLAIN_VALUE
    assert (report["hits"], report["misses"]) == (0, 2)
    assert all(path.stat().st_size > 100 for path in toy.cache.glob("toy/*/toy.main.outer-*.nbc"))


def test_each_signature_has_a_file_of_its_own(toy):
    # Two processes that compile different signatures at once cannot overwrite each other.
    assert len(list(toy.cache.glob("toy/*/toy.main.outer-*.nbc"))) == 2


def test_no_writable_folder_means_no_cache(toy):
    shutil.rmtree(toy.cache)
    toy.cache.write_text("a file where the folder should be")
    report = toy.run()
    assert report["value"] == PLAIN_VALUE
    assert report["folder"] == "None"


@pytest.mark.parametrize("switch", ["TRUELINE_PURE_PYTHON", "NUMBA_DISABLE_JIT"])
def test_pure_python_switch_gives_the_same_numbers(toy, switch):
    script = """
import json, sys
import numpy as np
from toy import main
value = main.outer(np.array([2.0, 3.0]))
print(json.dumps([type(main.outer).__name__, value, main.factorial(5), "numba" in sys.modules]))
"""
    kind, value, factorial, numba_loaded = toy.run(script, **{switch: "1"})
    assert (value, factorial) == (PLAIN_VALUE, 120)
    if switch == "TRUELINE_PURE_PYTHON":
        assert (kind, numba_loaded) == ("function", False)


def test_old_folders_are_pruned_and_strangers_left_alone(tmp_path):
    folders = [tmp_path / f"{i:024x}" for i in range(7)]
    for age, folder in enumerate(folders):
        folder.mkdir()
        os.utime(folder, (1e9 - age, 1e9 - age))
    stranger = tmp_path / "notes"
    stranger.mkdir()

    machine_code.prune(tmp_path)

    assert sorted(p.name for p in tmp_path.iterdir() if p != stranger) == [
        p.name for p in folders[: machine_code._KEPT_FOLDERS]
    ]
    assert stranger.exists()


def test_function_outside_the_package_is_compiled_but_not_cached(monkeypatch):
    monkeypatch.delenv("TRUELINE_PURE_PYTHON", raising=False)

    @jit.kernel
    def double(a):
        return 2 * a

    assert double(21) == 42
    assert double.py_func(21) == 42
    assert double.stats.cache_path is None


def test_closure_is_refused_with_a_remedy(monkeypatch):
    monkeypatch.delenv("TRUELINE_PURE_PYTHON", raising=False)
    factor = 3.0
    with pytest.raises(TypeError, match="Pass them as arguments"):

        @jit.kernel
        def scale(a):
            return factor * a


def test_kernels_use_names_of_files_that_the_cache_key_digests():
    # A constant or helper from any other file could change while old machine code stays in use.
    root = Path(jit.__file__).parents[1]
    sources = {path: path.read_text() for path in root.rglob("*.py")}
    digested = {
        ".".join(path.relative_to(root.parent).with_suffix("").parts)
        for path, text in sources.items()
        if "@kernel" in text or "numba" in text
    }
    strangers = []
    for path, text in sources.items():
        if "@kernel" not in text:
            continue
        tree = ast.parse(text)
        origin = {
            alias.asname or alias.name: node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("trueline")
            for alias in node.names
        }
        for function in tree.body:
            if isinstance(function, ast.FunctionDef) and any(
                "kernel" in ast.unparse(decorator) for decorator in function.decorator_list
            ):
                used = {
                    n.id
                    for part in function.body
                    for n in ast.walk(part)
                    if isinstance(n, ast.Name)
                }
                strangers += [
                    (path.name, function.name, name)
                    for name in used & set(origin)
                    if origin[name] not in digested
                ]
    assert not strangers


# Kernels without machine code are interpreted; here they have few steps for it.
INTERPRETED = """
import json, sys, threading
import numpy as np
import trueline.numerics.jit as jit
jit.OPERATIONS = 1000
from toy import helper, main
from toy.jit import compiler
states = lambda: [("not" not in repr(k)) for k in (main.add_ones, helper.shift)]
report = {}
"""


def run_interpreted(toy, script, **switches):
    switches = {"TRUELINE_COMPILE": "auto"} | switches
    return toy.run(f"{INTERPRETED}{script}\nprint(json.dumps(report))", **switches)


@pytest.fixture
def cold(toy):
    """The toy without machine code on disk."""
    shutil.rmtree(toy.cache)
    return toy


def test_small_work_is_interpreted_without_numba(cold):
    script = """
x = np.zeros(3)
returned = main.add_ones(x, 5)
report["value"], report["x"] = [list(returned), [type(v).__name__ for v in returned]], list(x)
report["outer"] = main.outer(np.array([2.0, 3.0])), main.outer(np.array([0.0])) == np.inf
report["compiled"], report["numba"] = states(), "numba" in sys.modules
"""
    report = run_interpreted(cold, script)
    assert report["value"] == [[5.0, True, 5], ["float", "bool", "int"]]  # as from machine code
    assert report["x"] == [5.0] * 3
    assert report["outer"] == [PLAIN_VALUE, True]
    assert report["compiled"] == [False, False]
    assert not report["numba"]


@pytest.mark.parametrize("calls", [1, 100], ids=["one long call", "many short calls"])
def test_a_kernel_whose_steps_are_used_up_is_compiled(cold, calls):
    script = f"""
x = np.zeros(3)
for _ in range({calls}):
    main.add_ones(x, {300 // calls})
report["x"], report["compiled"] = list(x), states()
report["steps of the inner one"] = helper.shift._budget.left == jit.OPERATIONS
"""
    report = run_interpreted(cold, script)
    assert report["x"] == [300.0] * 3  # what the unfinished call had written is taken back
    assert report["compiled"][0]
    assert report["steps of the inner one"]  # they went at the expense of the outer one


@pytest.mark.parametrize(
    "call",
    [
        "main.add_ones(np.zeros(3, dtype=np.float32), 1)[0] == 1.0",
        "main.add_ones(np.zeros(jit.NUMBERS + 1), 1)[0] == 1.0",
        "main.inverse(0) == np.inf",  # where Python raises an error
        "main.inverse((np.zeros(1), np.zeros(3))[0].sum()) == np.inf",
    ],
    ids=["single precision", "many numbers", "an error", "no error"],
)
def test_what_is_not_interpreted(cold, call):
    report = run_interpreted(
        cold, f"report['right'] = bool({call}); report['numba'] = 'numba' in sys.modules"
    )
    assert report["right"]
    assert report["numba"] == ("sum" not in call)


def test_machine_code_on_disk_is_used_and_other_kinds_of_arguments_are_interpreted(toy):
    script = """
main.outer(np.array([2.0, 3.0]))
report["numba"] = "numba" in sys.modules
import numba
main.outer(np.array([2.0, 3.0]))
report["value"] = main.outer(np.arange(2, 4))
report["hits"] = sum(main.outer.stats.cache_hits.values())
report["kinds"] = len(main.outer.dispatcher.signatures)
"""
    report = run_interpreted(toy, script)
    assert not report["numba"]  # is not imported for that
    assert (report["value"], report["hits"], report["kinds"]) == (PLAIN_VALUE, 1, 1)


def test_machine_code_on_disk_is_loaded_once_interpreting_took_as_long_as_its_import(toy):
    script = """
jit.WORTH_IMPORTING = 100
x = np.array([2.0, 3.0])
values = [main.outer(x) for _ in range(20)]
report["same"], report["numba"] = set(values) == {values[0]}, "numba" in sys.modules
report["hits"] = sum(main.outer.stats.cache_hits.values())
"""
    assert run_interpreted(toy, script) == {"same": True, "numba": True, "hits": 1}


def test_never_compiling_uses_what_is_on_disk(toy):
    script = """
report["value"] = main.outer(np.array([2.0, 3.0]))
report["hits"] = sum(main.outer.stats.cache_hits.values())
x = np.zeros(3)
main.add_ones(x, 300)
report["x"], report["compiled"] = list(x), states()
"""
    report = run_interpreted(toy, script, TRUELINE_COMPILE="never")
    assert (report["value"], report["hits"]) == (PLAIN_VALUE, 1)
    assert report["x"] == [300.0] * 3
    assert not report["compiled"][0]


def test_sources_edited_after_import_are_not_interpreted(cold):
    script = """
import os, time
later = time.time() + 5
os.utime(main.__file__, (later, later))
report["value"], report["compiled"] = main.add_ones(np.zeros(3), 1)[0], states()
"""
    # The inner one is compiled as a part of the outer one.
    assert run_interpreted(cold, script) == {"value": 1.0, "compiled": [True, False]}


def test_threads_interpret_at_the_same_time(cold):
    script = """
sys.setswitchinterval(1e-6)
arrays = [np.zeros(3) for _ in range(8)]
threads = [threading.Thread(target=main.add_ones, args=(x, 20)) for x in arrays]
for thread in threads: thread.start()
for thread in threads: thread.join()
report["x"], report["compiled"] = [list(x) for x in arrays], states()
"""
    report = run_interpreted(cold, script)
    assert report["x"] == [[20.0] * 3] * 8
    assert report["compiled"][0]


def test_unknown_mode_is_refused():
    environment = os.environ | {"TRUELINE_COMPILE": "sometimes"}
    command = [sys.executable, "-c", "import trueline.numerics.jit"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "TRUELINE_COMPILE=sometimes is not one of auto, always, never" in done.stderr


def test_a_terminal_is_told_what_takes_long(monkeypatch, capsys):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def lines(seconds, quiet="0"):
        monkeypatch.setattr(sys, "stderr", Terminal())
        monkeypatch.setenv("TRUELINE_QUIET", quiet)
        with jit.compiler.telling("descend"):
            time.sleep(seconds)
        return sys.stderr.getvalue()

    text = "trueline: compiling kernels for this machine, once: descend\n"
    assert (lines(1.5), lines(0.1), lines(1.5, quiet="1")) == (text, "", "")


posix_only = pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")


@posix_only
def test_the_cache_can_be_read_by_all_and_written_by_the_owner(tmp_path):
    before = os.umask(0)
    try:
        folder = machine_code.open_folder(tmp_path / "trueline", "key")
        machine_code._write_atomically(folder / "a.nbc", b"code")
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o777 for path in (folder.parent, folder, folder / "a.nbc")]
    assert modes == [0o755, 0o755, 0o644]


@posix_only
def test_a_folder_that_everybody_can_write_to_is_not_used(tmp_path):
    folder = machine_code.open_folder(tmp_path / "trueline", "key")
    for path in folder, folder.parent:
        path.chmod(0o777)
        assert machine_code.open_folder(tmp_path / "trueline", "key") is None
        path.chmod(0o755)
    assert machine_code.open_folder(tmp_path / "trueline", "key") == folder


SHIPPING = """
import json, os, sys
from pathlib import Path
from trueline.numerics import machine_code
level = machine_code.level_of_host()
if os.environ.get("TOY_BUILDS"):
    os.environ["NUMBA_CPU_NAME"], os.environ["NUMBA_CPU_FEATURES"] = level
from toy.jit import compiler
if os.environ.get("TOY_BUILDS"):
    compiler.write_into(Path(compiler.root) / "machine_code")
"""


@pytest.mark.skipif(machine_code.level_of_host() is None, reason="no level for this processor")
def test_code_shipped_for_a_level_of_processors_is_used(cold):
    cold.run(SHIPPING + REPORT, TOY_BUILDS="1")
    used = cold.run(SHIPPING + REPORT, TRUELINE_COMPILE="never")
    assert (used["value"], used["hits"], used["misses"]) == (PLAIN_VALUE, 2, 0)
    # Code for sources of another version is left alone.
    edit_helper(cold)
    edited = cold.run(SHIPPING + REPORT)
    assert (edited["value"], edited["hits"]) == (EDITED_VALUE, 0)


def whole_arrays_assigned(function):
    """Assignments to slices, and to rows of what has more indices elsewhere, unless of a number."""
    parts = [node for node in ast.walk(function) if isinstance(node, ast.Subscript)]
    indices = {}
    for part in parts:
        name, count = ast.unparse(part.value), len(getattr(part.slice, "elts", "1"))
        indices[name] = max(count, indices.get(name, 1))
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AugAssign) and not isinstance(
            node.value, ast.Constant
        ):
            for part in ast.walk(ast.Tuple(getattr(node, "targets", [getattr(node, "target", 0)]))):
                if not isinstance(part, ast.Subscript) or isinstance(part.ctx, ast.Load):
                    continue
                is_row = len(getattr(part.slice, "elts", "1")) < indices[ast.unparse(part.value)]
                if is_row or any(isinstance(inner, ast.Slice) for inner in ast.walk(part.slice)):
                    yield ast.unparse(node)


def test_kernels_copy_slices_and_rows_by_loops():
    # With ``a[:k] = b`` Numba compiles the text of an error message, which takes seconds.
    root = Path(jit.__file__).parents[1]
    slow = []
    for path in root.rglob("*.py"):
        text = path.read_text()
        for function in ast.parse(text).body if "@kernel" in text else ():
            decorators = getattr(function, "decorator_list", ())
            if any("kernel" in ast.unparse(decorator) for decorator in decorators):
                slow += [(path.name, found) for found in whole_arrays_assigned(function)]
    assert not slow


FITS = """
import json, warnings
import numpy as np
from trueline.cli.warming import small_fits
warnings.simplefilter("ignore")
report = {}
for model, X, y, _ in small_fits():
    if isinstance(X, np.ndarray) and X.shape == (60, 4) and y.ndim == 1:
        name = f"{type(model).__name__}, {len(np.unique(y))} values, {X.dtype}"
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        if hasattr(model, "predict") and name not in report:
            try:
                found = model.fit(X, y).predict(X)
                # Several hyperplanes can have the fewest errors.
                tied = type(model).__name__ == "ZeroOneHalfspace"
                found = np.mean(found == y) if tied else found
                report[name] = np.ravel(found).astype(float).tolist()
            except ValueError:
                pass  # several columns of targets are needed
print(json.dumps(report))
"""


@pytest.mark.slow
def test_interpreted_and_compiled_fits_agree(tmp_path):
    def answers(mode):
        variables = {"TRUELINE_COMPILE": mode, "TRUELINE_CACHE_DIR": str(tmp_path / mode)}
        done = subprocess.run(
            [sys.executable, "-c", FITS],
            env=os.environ | variables,
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)

    automatic, compiled = answers("auto"), answers("always")
    assert len(compiled) > 50
    different = {
        name: float(np.max(np.abs(np.subtract(automatic[name], values))))
        for name, values in compiled.items()
        if not np.allclose(automatic[name], values, rtol=1e-5, atol=1e-5)
    }
    assert different == {}
