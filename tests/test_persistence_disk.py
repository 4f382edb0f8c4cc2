"""Where models are saved and loaded: regular files, whole or not at all."""

import json
import os
import re
import socket
import stat
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from trueline import Ridge, load, save
from trueline.errors import ModelFileError
from trueline.persistence import archive

posix = pytest.mark.skipif(os.name != "posix", reason="links, modes and pipes of POSIX systems")

OLD, NEW = Ridge(alpha=1.0), Ridge(alpha=2.0)


@pytest.fixture(params=["nameless", "no link", "named"])
def way(request, monkeypatch):
    """With nameless temporary files, where they cannot be named, and without."""
    if request.param == "nameless" and not hasattr(os, "O_TMPFILE"):
        pytest.skip("this system has no nameless files")
    if request.param == "no link":
        monkeypatch.setattr(archive, "_link", lambda *_: False)
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    return request.param


def is_temporary(name):
    return re.fullmatch(r"\.trueline-[0-9a-f]{16}\.tmp", name) is not None


# --- saving --------------------------------------------------------------------------------------


def test_a_new_file_and_one_that_is_replaced(tmp_path, way):
    path = tmp_path / "m.trueline"
    for model in (OLD, NEW):
        save(model, path)
        assert load(path).alpha == model.alpha
        assert os.listdir(tmp_path) == ["m.trueline"]


@posix
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o660, 0o440])
def test_the_mode_of_the_file_that_is_replaced_is_kept(tmp_path, way, mode):
    path = save(OLD, tmp_path / "m.trueline")
    path.chmod(mode)
    save(NEW, path)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_a_new_file_has_the_mode_that_the_umask_says(tmp_path, way, umask):
    before = os.umask(umask)
    try:
        path = save(OLD, tmp_path / "m.trueline")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


@posix
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("exists", [True, False])
def test_links_are_written_through(tmp_path, way, depth, exists):
    real, links = tmp_path / "real", tmp_path / "links"
    real.mkdir()
    links.mkdir()
    target = real / "m.trueline"
    if exists:
        save(OLD, target)
    link = target
    for number in range(depth):
        (links / str(number)).symlink_to(link)
        link = links / str(number)
    save(NEW, link)
    assert link.is_symlink()
    assert not target.is_symlink()
    assert load(target).alpha == load(link).alpha == NEW.alpha
    assert os.listdir(real) == ["m.trueline"]
    assert len(os.listdir(links)) == depth


@posix
def test_links_that_lead_nowhere(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "missing").symlink_to(tmp_path / "nowhere" / "m.trueline")
    with pytest.raises(OSError, match="symbolic links"):
        save(OLD, tmp_path / "loop")
    with pytest.raises(FileNotFoundError, match="no such folder"):
        save(OLD, tmp_path / "missing")
    assert sorted(os.listdir(tmp_path)) == ["loop", "missing"]


@pytest.fixture(params=["folder", "pipe", "socket", "device", "link to a pipe", "link to a folder"])
def not_a_file(request, tmp_path):
    """Something that is not a regular file, and how errors call it."""
    if request.param != "folder" and os.name != "posix":
        pytest.skip("things of POSIX systems")
    path = tmp_path / "thing"
    match request.param:
        case "folder":
            path.mkdir()
            yield path, "a folder"
        case "pipe":
            os.mkfifo(path)
            yield path, "a named pipe"
        case "socket":
            with socket.socket(socket.AF_UNIX) as server:
                before = os.getcwd()
                os.chdir(tmp_path)  # the path of a socket must be short
                try:
                    server.bind("thing")
                finally:
                    os.chdir(before)
                yield path, "a socket"
        case "device":
            yield type(path)(os.devnull), "a character device"
        case "link to a pipe":
            os.mkfifo(tmp_path / "pipe")
            path.symlink_to(tmp_path / "pipe")
            yield path, "a named pipe"
        case "link to a folder":
            (tmp_path / "folder").mkdir()
            path.symlink_to(tmp_path / "folder")
            yield path, "a folder"


def test_what_is_not_a_regular_file_is_never_replaced(not_a_file, way):
    path, kind = not_a_file
    before = os.lstat(path)
    with pytest.raises(ModelFileError, match=f"is {kind}, which a model cannot replace: give"):
        save(OLD, path)
    after = os.lstat(path)
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)


def test_what_comes_to_stand_there_while_a_model_is_written_is_not_replaced(tmp_path, way):
    path = tmp_path / "m.trueline"

    def write(file):
        file.write(b"data")
        path.mkdir(exist_ok=True)

    with pytest.raises(ModelFileError, match="is a folder"):
        archive.replace_file(path, write)
    assert os.listdir(tmp_path) == ["m.trueline"]
    assert path.is_dir()


def test_a_file_that_appears_while_a_model_is_written_is_replaced(tmp_path, way):
    path = tmp_path / "m.trueline"

    def write(file):
        file.write(b"mine")
        path.write_bytes(b"theirs")

    archive.replace_file(path, write)
    assert path.read_bytes() == b"mine"
    assert os.listdir(tmp_path) == ["m.trueline"]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_what_fails_leaves_everything_as_it_was(tmp_path, way, error):
    path = save(OLD, tmp_path / "m.trueline")

    def write(file):
        file.write(b"half")
        raise error

    for target in (path, tmp_path / "new"):
        with pytest.raises(type(error)):
            archive.replace_file(target, write)
    assert os.listdir(tmp_path) == ["m.trueline"]
    assert load(path).alpha == OLD.alpha


@posix
def test_names_may_be_as_long_as_the_system_allows(tmp_path, way):
    path = tmp_path / ("m" * 255)
    save(OLD, path)
    save(NEW, path)
    assert load(path).alpha == NEW.alpha


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read anything")
def test_a_folder_need_not_be_readable(tmp_path, way):
    tmp_path.chmod(0o300)
    try:
        save(OLD, tmp_path / "m.trueline")
    finally:
        tmp_path.chmod(0o700)
    assert os.listdir(tmp_path) == ["m.trueline"]


@posix
def test_temporary_files_in_use_are_left_alone_and_abandoned_ones_are_removed(tmp_path, way):
    import fcntl

    used, abandoned = (tmp_path / f".trueline-{digit * 16}.tmp" for digit in "ab")
    other = tmp_path / ".trueline-notes.tmp"
    for path in (used, abandoned, other):
        path.write_bytes(b"something")
    abandoned.chmod(0o400)  # as when a file that is read-only was to be replaced
    with used.open("rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        save(OLD, tmp_path / "m.trueline")
    assert sorted(os.listdir(tmp_path)) == sorted([used.name, other.name, "m.trueline"])


@posix
def test_a_temporary_file_that_is_removed_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    lock, made = archive._lock, []

    def late(file):
        made.append(file.name)
        if len(made) == 1:
            archive._remove_strays(tmp_path)
        lock(file)

    monkeypatch.setattr(archive, "_lock", late)
    save(OLD, tmp_path / "m.trueline")
    assert len(made) == 2
    assert os.listdir(tmp_path) == ["m.trueline"]


@posix
def test_several_that_save_at_once_do_not_hinder_each_other(tmp_path, way, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # the disk survives
    path = tmp_path / "m.trueline"

    def save_and_load(number):
        own = tmp_path / f"{number}.trueline"
        for _ in range(25):
            for target in (path, own):
                archive.replace_file(target, lambda file: file.write(bytes([number]) * 9000))
            assert own.read_bytes() == bytes([number]) * 9000
            found = path.read_bytes()
            assert found == found[:1] * 9000

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(save_and_load, range(4)))
    assert sorted(os.listdir(tmp_path)) == [f"{name}.trueline" for name in "0123m"]


# A process that forks: each child saves and is killed at another call of a built-in function, of
# which there is one between any two system calls. The parent then looks at the folder.
KILLED = """
    import json, os, signal, sys
    from trueline.persistence import archive

    folder, way, is_replaced = sys.argv[1], sys.argv[2], sys.argv[3] == "replaced"
    if way == "named" and hasattr(os, "O_TMPFILE"):
        del os.O_TMPFILE
    path = archive.Path(folder, "m.trueline")
    os.fsync = lambda descriptor: os.fstat(descriptor)  # the disk survives, so there is no hurry

    def save(number):
        def write(file):
            for _ in range(8):
                file.write(bytes([number]) * 5000)
        archive.replace_file(path, write)

    def number():
        data = path.read_bytes()
        assert data == data[:1] * 40_000
        return data[0]

    def child(limit):
        seen = 0
        def kill(frame, event, argument):
            nonlocal seen
            seen += event in ("c_call", "c_return")
            if seen == limit:
                os.kill(os.getpid(), signal.SIGKILL)
        sys.setprofile(kill)
        save(2)
        sys.setprofile(None)
        os._exit(0)

    found, limit, status = [], 0, None
    while status != 0:
        limit += 1
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        if is_replaced:
            save(1)
        if not (pid := os.fork()):
            child(limit)
        status = os.waitpid(pid, 0)[1]
        names = os.listdir(folder)
        left = number() if "m.trueline" in names else None
        save(3)
        assert number() == 3
        found.append((left, sorted(set(names) - {"m.trueline"}), os.listdir(folder)))
    print(json.dumps(found))
"""


@posix
@pytest.mark.parametrize(
    ("way", "state"),
    [("nameless", "new"), ("nameless", "replaced"), ("named", "new"), ("named", "replaced")],
)
def test_a_process_that_is_killed(tmp_path, way, state):
    if way == "nameless" and not hasattr(os, "O_TMPFILE"):
        pytest.skip("this system has no nameless files")
    code = textwrap.dedent(KILLED)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, tmp_path, way, state],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) > 100  # so many places to be killed at
    before = 1 if state == "replaced" else None
    numbers = [left for left, _, _ in found]
    # Up to some place the older file, or none; after it the new one; never half of one.
    switch = numbers.index(2)
    assert numbers == [before] * switch + [2] * (len(found) - switch)
    strays = [names for _, names, _ in found if names]
    assert all(len(names) == 1 and is_temporary(names[0]) for names in strays)
    if way == "nameless":
        # None while the file is written, however long that takes: only when a complete file is
        # about to be renamed, between two calls.
        assert len(strays) <= (0 if state == "new" else 4)
        assert not any(names for _, names, _ in found[: switch - 4])
    # And the next save in that folder removes what is left.
    assert all(after == ["m.trueline"] for _, _, after in found)


# --- loading -------------------------------------------------------------------------------------


def test_what_is_not_a_regular_file_is_not_loaded(not_a_file):
    path, kind = not_a_file
    with pytest.raises(ModelFileError, match=f"cannot be loaded: it is {kind}"):
        load(path)


@posix
def test_a_pipe_with_a_model_in_it_is_not_loaded_either(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(tmp_path / "pipe", os.O_WRONLY)
    try:
        os.write(writer, save(OLD, tmp_path / "m.trueline").read_bytes())
        with pytest.raises(ModelFileError, match="a named pipe"):
            load(tmp_path / "pipe")
    finally:
        os.close(writer)
        os.close(reader)


@posix
@pytest.mark.parametrize("text", [b"", b"not a model"])
def test_refused_files_are_closed(tmp_path, not_a_file, text):
    bad = tmp_path / "bad"
    bad.write_bytes(text)
    before = len(os.listdir("/dev/fd"))
    for path in (not_a_file[0], bad):
        with pytest.raises(ModelFileError):
            load(path)
    assert len(os.listdir("/dev/fd")) == before


@posix
def test_files_are_loaded_through_links(tmp_path):
    model = Ridge().fit(np.eye(3), np.arange(3.0))
    (tmp_path / "link").symlink_to(save(model, tmp_path / "m.trueline"))
    assert np.array_equal(load(tmp_path / "link").coef_, model.coef_)
