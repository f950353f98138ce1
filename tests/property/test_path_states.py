"""What a log says of paths stays in the folder that it is restored to, and the last state of a path counts."""

import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handtools.core.errors import StorageFault
from handtools.fleet.workspace_log import PathRestore, PathState, Segment, apply_path_states

OUTSIDE = "{outside}"
"""Stands for the folder beside the one that is restored, whose path is known when the test runs."""
PLAIN = ("a", "b", "l", "d", "d/e", "a/b", "l/x", "l/victim", "d/e/f", "link", "link/victim", "link/sub", "kept/x",
         "up/outside/victim", "\udcff", "a\n", "-", "...", ".git/config", "d/" + "n" * 255, "e" * 256)  # fmt: skip
ODD = ("", ".", "..", "/", "../outside/victim", "../outside", "../new", "d/../../outside/victim", "a/..", "./a",
       "a//b", "a/", "/etc", OUTSIDE, f"{OUTSIDE}/victim", f"d{OUTSIDE}/victim", "link/../outside/victim", "a\0",
       "a/\0b", "\ud800")  # fmt: skip
TARGETS = (
    b"",
    b"..",
    b"../outside",
    b"../outside/victim",
    OUTSIDE.encode(),
    b"/",
    b"a",
    b"nowhere",
    b"x\0y",
    b"z" * 5000,
)
KINDS = st.sampled_from(["file", "link", "folder", "tree", "gone"])
MODES = st.one_of(st.sampled_from([0o777, 0o4755, 0o2755, 0o1777, 0o7777, 0o000]), st.integers(0, 0o7777))
NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


def hostile_state(paths: Sequence[str]) -> st.SearchStrategy[PathState]:
    return st.builds(
        PathState, st.sampled_from(paths), KINDS, MODES, st.sampled_from(TARGETS), st.integers(0, 1 << 60)
    )


HOSTILE = st.lists(hostile_state((*PLAIN, *ODD)), min_size=1, max_size=8)
IN_DISGUISE = st.lists(hostile_state(PLAIN), min_size=1, max_size=12)


@contextmanager
def place() -> Iterator[tuple[Path, Path]]:
    """A folder with links that lead out, and what is beside it."""
    with tempfile.TemporaryDirectory() as folder:
        outside, root = Path(folder, "outside"), Path(folder, "root")
        (outside / "sub").mkdir(parents=True)
        (outside / "victim").write_text("victim")
        (outside / "victim").chmod(0o640)
        (outside / "sub").chmod(0o700)
        (root / "d" / "e").mkdir(parents=True)
        (root / "d" / "e" / "old").write_text("old")
        (root / "kept").mkdir()
        (root / "link").symlink_to(outside)
        (root / "up").symlink_to("..")
        yield root, outside
        for top, folders, _ in os.walk(folder):
            for each in folders:
                if not os.path.islink(os.path.join(top, each)):
                    os.chmod(os.path.join(top, each), 0o700)


def at(outside: Path, state: PathState) -> PathState:
    named = state.path.replace(OUTSIDE, str(outside))
    return state._replace(path=named, data=state.data.replace(OUTSIDE.encode(), os.fsencode(outside)))


def seen(folder: Path, *, but: Path | None = None) -> dict[str, tuple[int, int, bytes]]:
    """Everything below a folder: kind and mode, links, and content."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        if but is not None and (path == but or but in path.parents):
            continue
        facts = path.lstat()
        data = os.fsencode(os.readlink(path)) if stat.S_ISLNK(facts.st_mode) else b""
        if stat.S_ISREG(facts.st_mode) and os.access(path, os.R_OK):
            data = path.read_bytes()
        found[str(path)] = (facts.st_mode, facts.st_nlink, data)
    return found


def is_plain(path: str) -> bool:
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return b"\0" not in encoded and {"", ".", ".."}.isdisjoint(path.split("/"))


@given(st.one_of(HOSTILE, IN_DISGUISE))
@example([PathState("l", "folder", 0o777), PathState("l", "link", 0, OUTSIDE.encode())])
@example([PathState("l", "link", 0, OUTSIDE.encode()), PathState("l", "folder", 0o777)])
@example([PathState("l", "link", 0, OUTSIDE.encode()), PathState("l/sub", "folder", 0o777)])
@example([PathState("l", "link", 0, OUTSIDE.encode()), PathState("l/new/x", "file", 0o644, b"x")])
@example([PathState("link/victim", "gone")])
@example([PathState("link/sub", "tree", 0o777)])
@example([PathState("up/outside/victim", "file", 0o644, b"x")])
@example([PathState("..", "tree", 0o777)])
@example([PathState("s", "file", 0o6755, b"x"), PathState("s2", "folder", 0o6777)])
def test_nothing_outside_of_the_folder_changes_whatever_a_log_says(states: list[PathState]) -> None:
    with place() as (root, outside):
        states = [at(outside, each) for each in states]
        before, inside = seen(root.parent, but=root), seen(root)
        if all(is_plain(each.path) for each in states):
            with suppress(StorageFault, OSError):  # a name that is too long, a link to nothing
                apply_path_states(str(root), states)
        else:
            with pytest.raises(StorageFault):
                apply_path_states(str(root), states)
            assert seen(root) == inside, "what is refused changes nothing"
        assert seen(root.parent, but=root) == before
        assert not [path for path, (mode, _, _) in seen(root).items() if mode & 0o6000]


@given(HOSTILE, st.integers(0, 3))
def test_a_segment_with_a_path_that_leads_out_is_not_read(states: list[PathState], kept: int) -> None:
    paths, beside = states[kept:], states[:kept]
    packed = Segment(b"journal", b"log", tuple(paths), "writer", tuple(beside)).pack()
    is_right = all(is_plain(each.path) for each in states) and not beside
    if is_right:
        found = Segment.unpack(packed)
        assert (found.paths, found.states) == (tuple(paths), ())
        assert found.paths == tuple(
            listed._replace(data=state.data)
            for listed, state in zip(Segment.unpack(packed, with_data=False).paths, paths, strict=True)
        )
    else:
        for with_data in (True, False):
            with pytest.raises(StorageFault):
                Segment.unpack(packed, with_data=with_data)


STATES = st.lists(
    st.builds(
        PathState,
        PATHS,
        KINDS,
        st.sampled_from([0o755, 0o700, 0o777, 0o1777, 0o644 | 0o100, 0o750]),
        st.sampled_from([b"one", b"two", b"a/b", b"/nowhere"]),
        st.sampled_from([0, 1_000_000_007, 10**18 + 1]),
    ),
    max_size=20,
)
Model = dict[str, tuple[str, int | None, bytes]]
"""Paths with kind, mode (None for a folder of which nobody said it) and content."""


def put(model: Model, state: PathState) -> None:
    """The state of a path is the last one that was said; what is below something that is no folder goes."""
    *above, _ = state.path.split("/")
    for end in range(1, len(above) + 1):
        folder = "/".join(above[:end])
        if model.get(folder, ("", None, b""))[0] == "folder":
            continue
        if state.kind == "gone":
            return
        model[folder] = ("folder", None, b"")
    stays = state.kind == "folder" and model.get(state.path, ("", None, b""))[0] == "folder"
    for path in [each for each in model if each.startswith(f"{state.path}/") and not stays]:
        del model[path]
    if state.kind == "gone":
        model.pop(state.path, None)
    elif state.kind == "link":
        model[state.path] = ("link", None, state.data)
    elif state.kind == "file":
        model[state.path] = ("file", state.mode & 0o777, state.data)
    else:
        model[state.path] = ("folder", state.mode, b"")


@given(STATES, st.lists(st.integers(0, 20), max_size=4))
def test_of_each_path_the_last_state_is_restored(states: list[PathState], cuts: list[int]) -> None:
    model: Model = {}
    base = [
        PathState("a", "folder", 0o755),
        PathState("a/b", "file", 0o600, b"old"),
        PathState("b", "folder", 0o755),
        PathState("b/a", "folder", 0o755),
        PathState("b/a/c", "link", 0, b"old"),
        PathState("c", "link", 0, b"a"),
    ]
    for each in (*base, *states):
        put(model, each)
    edges = [0, *sorted(min(cut, len(states)) for cut in cuts), len(states)]
    lists = [states[start:end] for start, end in pairwise(edges)]
    with tempfile.TemporaryDirectory() as folder:
        apply_path_states(folder, base)
        with PathRestore(folder, [[each._replace(data=b"") for each in some] for some in lists]) as restore:
            for number, some in enumerate(lists):
                restore.write_files_of_step(number, some)
        found = {
            path.removeprefix(f"{folder}/"): (mode, data)
            for path, (mode, _, data) in seen(Path(folder)).items()
        }
        del found[folder]
        assert found.keys() == model.keys()
        kinds = {"file": stat.S_ISREG, "folder": stat.S_ISDIR, "link": stat.S_ISLNK}
        for path, (kind, mode, data) in model.items():
            assert kinds[kind](found[path][0]), path
            assert found[path][1] == data, path
            assert mode is None or stat.S_IMODE(found[path][0]) == mode, path
