"""Sources of a fleet's workspaces that were made to do harm: archives, images, and segments of a log."""

import contextlib
import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import zstandard

from bench.escapes.host.place import Place
from handtools import Call, Policy
from handtools.core.errors import HandtoolsError
from handtools.fleet.host import WorkspaceHost
from handtools.fleet.workspace_log import LogStore
from handtools.fleet.workspaces import WorkspaceStore

HONEST = "honest"
"""The name of a host that goes on with a log as it is, which must work."""
FILE, FOLDER, LINK, HARD_LINK = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


class Entry(NamedTuple):
    """One entry of an archive."""

    name: str
    kind: bytes = FILE
    target: str = ""
    data: bytes = b"x"
    mode: int = 0o644
    headers: dict[str, str] = {}  # noqa: RUF012


def archive(*entries: Entry) -> bytes:
    """A tar archive of some entries, as they are."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in entries:
            info = tarfile.TarInfo(entry.name)
            info.type, info.linkname, info.mode, info.pax_headers = (
                entry.kind,
                entry.target,
                entry.mode,
                entry.headers,
            )
            info.size = len(entry.data) if entry.kind == FILE else 0
            tar.addfile(info, io.BytesIO(entry.data))
    return packed.getvalue()


def image(folder: Path, *layers: bytes, index: Any = None) -> Path:
    """An OCI layout of some layers; with `index`, that document in place of an honest one."""
    (folder / "blobs/sha256").mkdir(parents=True)

    def blob(data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        (folder / "blobs/sha256" / name).write_bytes(data)
        return f"sha256:{name}"

    packed = [{"digest": blob(gzip.compress(layer))} for layer in layers]
    plain = [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]
    config = blob(json.dumps({"rootfs": {"diff_ids": plain}}).encode())
    manifest = blob(json.dumps({"config": {"digest": config}, "layers": packed}).encode())
    (folder / "index.json").write_text(json.dumps(index or {"manifests": [{"digest": manifest}]}))
    return folder


def host(place: Place, name: str, *, log: str = "") -> WorkspaceHost:
    """A host of a fleet in the place; with `log`, over the log of that name."""
    store = WorkspaceStore(place.base / "hosts" / name)
    return WorkspaceHost(
        store, log=log_store(place, log) if log else None, policy=Policy(unattended="deny")
    )


def log_store(place: Place, name: str) -> LogStore:
    """An object store, as a folder of the place."""
    with contextlib.suppress(ImportError):
        import fsspec  # noqa: F401  # pyright: ignore[reportMissingImports]

        return LogStore(f"file://{place.base}/{name}")
    module: Any = ModuleType("fsspec")
    module.core = SimpleNamespace(url_to_fs=lambda url, **_: (_LocalFiles(), url.removeprefix("file://")))
    sys.modules["fsspec"] = module
    return LogStore(f"file://{place.base}/{name}")


class _LocalFiles:
    """What `LogStore` needs of fsspec for a folder, where fsspec is not installed."""

    protocol = "file"

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def cat_file(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def ls(self, path: str, *, detail: bool) -> list[str]:
        assert not detail
        return [str(each) for each in Path(path).iterdir()]

    def modified(self, path: str) -> datetime:
        return datetime.fromtimestamp(Path(path).stat().st_mtime, UTC)


def found_elsewhere(place: Place, *names: str) -> str | None:
    """Whether files of an attack's names lie outside of every template and workspace."""
    words = [word for name in names for word in ("-o", "-name", name)][1:]
    inside = {"tree", "root", "upper", "lower"}
    found = [path for path in _find(place.base, *words) if not inside.intersection(path.split("/"))]
    return f"written elsewhere: {', '.join(found)}" if found else None


def privileged(folder: Path) -> str | None:
    """Whether a folder holds devices, pipes, or files with somebody's privileges."""
    special = [word for kind in "bcps" for word in ("-o", "-type", kind)]
    found = _find(folder, "-not", "-type", "l", "-perm", "/6000", *special)
    return f"made: {', '.join(found)}, which is special or has privileges" if found else None


def _find(folder: Path, *words: str) -> list[str]:
    """Not with `os.walk`: paths may be longer than a path can be."""
    line = ["find", str(folder), "-mindepth", "1", "(", *words, ")", "-printf", "%P\\n"]
    return (
        subprocess.run(line, capture_output=True, check=False)
        .stdout.decode("utf-8", "replace")
        .splitlines()
    )


async def add(store: WorkspaceHost, kind: str, source: Path | str) -> str | None:
    """Add a template; says what its tree holds that it must not, or how our code failed."""
    try:
        digest = await store.add_template(kind, str(source))
    except HandtoolsError:
        return None
    except Exception as problem:
        return f"a bug: {type(problem).__name__}: {problem}"
    return privileged(store.store.templates.files_folder(digest))


class State(NamedTuple):
    """What a segment says about a path."""

    path: str
    kind: str = "file"
    mode: int = 0o644
    data: bytes = b"x"


def segment(states: Sequence[State] = (), kept: Sequence[State] = ()) -> bytes:
    """A segment of a log in the form in which it is stored."""
    both = [*states, *kept]
    head = _segment_head(both, [len(state.data) for state in both], kept=len(kept))
    return compressed(head + b"".join(state.data for state in both))


def segment_of_zeros(path: str, size: int) -> bytes:
    """A segment with one file of zeros; it is made without taking the memory for them."""
    packer = zstandard.ZstdCompressor().compressobj()
    packed = packer.compress(_segment_head([State(path)], [size]))
    for _ in range(size >> 20):
        packed += packer.compress(bytes(1 << 20))
    return packed + packer.flush()


def _segment_head(states: Sequence[State], sizes: list[int], *, kept: int = 0) -> bytes:
    head = {
        "writer": "somebody",
        "whole": False,
        "fence": False,
        "paths": [[state.path, state.kind, state.mode, 0] for state in states],
        "kept": kept,
        "sizes": [0, 0, *sizes],
    }
    return json.dumps(head).encode() + b"\n"


def compressed(data: bytes) -> bytes:
    """Bytes in the form in which a log stores them."""
    return zstandard.ZstdCompressor().compress(data)


async def begin_log(place: Place, *commands: str) -> str:
    """Make a workspace with a log, on a host that is gone then; returns its name."""
    source = place.base / "source"
    source.mkdir(exist_ok=True)
    (source / "a.txt").write_text("a\n")
    first = host(place, "first", log="log")
    name = await first.create(await first.add_template("folder", str(source)), name="w1")
    await first.call(name, Call(tool="write", args={"path": "b.txt", "content": "b\n"}))
    for command in commands:
        place.heard("bash", await first.call(name, Call(tool="bash", args={"command": command})))
    await first.aclose()
    return name


async def recover(
    place: Place,
    name: str,
    *segments: bytes,
    on: str = "second",
    change: Callable[[LogStore, Path], object] = lambda _log, _folder: None,
) -> str | None:
    """Let another host go on with a workspace, over a copy of its log that somebody has changed.

    Says how our code failed, or what the host made that it must not.
    """
    folder = place.base / f"log-{on}"
    shutil.copytree(place.base / "log", folder)
    log = log_store(place, folder.name)
    for packed in segments:
        log.append_segment(name, max(log.list_log_objects(name).segments, default=-1) + 1, packed)
    change(log, folder)
    other = host(place, on, log=folder.name)
    try:
        result = await other.call(name, Call(tool="read", args={"path": "a.txt"}))
    except HandtoolsError:
        return None
    except Exception as problem:
        return f"a bug: {type(problem).__name__}: {problem}"
    finally:
        await other.aclose()
    place.heard("read", result)
    if on == HONEST and not result.ok:
        return f"it proves nothing: {result.text[:100]}"
    return privileged(place.base / "hosts" / on)
