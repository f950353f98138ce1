import gzip
import hashlib
import io
import json
import os
import platform
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard

from handtools.core.errors import UsageError
from handtools.fleet.templates import Template, TemplateStore

Member = tuple[str, Any]
"""A path and its bytes, None for a folder, or a `TarInfo` as it is."""
FIRST: list[Member] = [
    ("etc", None),
    ("etc/old.conf", b"old\n"),
    ("etc/kept.conf", b"kept\n"),
    ("app", None),
    ("app/main.py", b"one\n"),
    ("cache", None),
    ("cache/a", b"a"),
]
SECOND: list[Member] = [
    ("app/main.py", b"two\n"),
    ("etc/.wh.old.conf", b""),
    ("cache/new", b"new"),
    ("cache/.wh..wh..opq", b""),
]
MERGED = {"etc/kept.conf": b"kept\n", "app/main.py": b"two\n", "cache/new": b"new"}


def special(name: str, kind: bytes, target: str = "", mode: int = 0o644) -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, mode
    return name, info


def layer(members: Sequence[Member]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in members:
            info = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            if content is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
            data = content if isinstance(content, bytes) else b""
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return packed.getvalue()


def sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def layout(
    folder: Path, layers: Sequence[Sequence[Member]], pack: Callable[[bytes], bytes] = gzip.compress
) -> Path:
    """An OCI layout with one image for this machine, and one for another."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def blob(data: bytes) -> dict[str, Any]:
        (blobs / sha256(data).partition(":")[2]).write_bytes(data)
        return {"digest": sha256(data), "size": len(data)}

    plain = [layer(each) for each in layers]
    config = blob(json.dumps({"rootfs": {"type": "layers", "diff_ids": [*map(sha256, plain)]}}).encode())
    manifest = blob(json.dumps({"config": config, "layers": [blob(pack(each)) for each in plain]}).encode())
    here = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    listed = [
        {**manifest, "platform": {"os": "linux", "architecture": here}},
        {"digest": sha256(b"elsewhere"), "platform": {"os": "linux", "architecture": "s390x"}},
    ]
    index = blob(json.dumps({"manifests": listed}).encode())
    (folder / "index.json").write_text(json.dumps({"manifests": [index]}))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return folder


def docker_saved(path: Path, layers: Sequence[Sequence[Member]]) -> Path:
    """What `docker save` wrote before it knew OCI layouts."""
    plain = [layer(each) for each in layers]
    config = json.dumps({"rootfs": {"diff_ids": [*map(sha256, plain)]}}).encode()
    name = f"{sha256(config).partition(':')[2]}.json"
    listed = [{"Config": name, "Layers": [f"{number}/layer.tar" for number in range(len(plain))]}]
    files = [(name, config), *((f"{number}/layer.tar", each) for number, each in enumerate(plain))]
    path.write_bytes(layer([*files, ("manifest.json", json.dumps(listed).encode())]))
    return path


def contents(made: Template) -> dict[str, bytes]:
    return {
        os.path.relpath(os.path.join(top, name), made.tree): Path(top, name).read_bytes()
        for top, _, names in os.walk(made.tree)
        for name in names
    }


@pytest.fixture
def store(tmp_path: Path) -> TemplateStore:
    return TemplateStore(tmp_path / "store")


def test_one_image_is_one_template_however_it_was_stored(tmp_path: Path, store: TemplateStore) -> None:
    made = store.add_image(layout(tmp_path / "gzip", [FIRST, SECOND]))
    assert contents(made) == MERGED
    packed = zstandard.ZstdCompressor().compress
    for other in (
        layout(tmp_path / "zstandard", [FIRST, SECOND], packed),
        layout(tmp_path / "plain", [FIRST, SECOND], bytes),
        docker_saved(tmp_path / "saved.tar", [FIRST, SECOND]),
    ):
        assert store.add_image(other).digest == made.digest
    with tarfile.open(tmp_path / "archive.tar", "w") as archive:
        archive.add(tmp_path / "gzip", ".", filter=_without_dot)
    assert store.add_image(tmp_path / "archive.tar").digest == made.digest
    assert store.digests() == [made.digest]


def _without_dot(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.name = info.name.removeprefix("./")
    return info


def test_one_folder_of_an_image_is_enough(tmp_path: Path, store: TemplateStore) -> None:
    image = layout(tmp_path / "image", [FIRST, [*SECOND, special("work", tarfile.SYMTYPE, "/app")]])
    assert contents(store.add_image(image, folder="/app")) == {"main.py": b"two\n"}
    assert contents(store.add_image(image, folder="work")) == {"main.py": b"two\n"}
    with pytest.raises(UsageError, match="no folder '/nowhere'"):
        store.add_image(image, folder="/nowhere")


def test_links_stay_and_are_not_followed_out(tmp_path: Path, store: TemplateStore) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    image = layout(
        tmp_path / "image",
        [
            [
                ("lib", None),
                ("lib/a", b"a"),
                special("lib64", tarfile.SYMTYPE, "/lib"),
                special("out", tarfile.SYMTYPE, str(outside)),
                special("up", tarfile.SYMTYPE, "../../../../../../../.." + str(outside)),
                special("lib/same", tarfile.LNKTYPE, "lib/a"),
            ],
            [("lib64/b", b"b"), ("out/escaped", b"x"), ("up/escaped", b"x")],
        ],
    )
    made = store.add_image(image)
    assert os.listdir(outside) == []
    assert sorted(os.listdir(made.tree / "lib")) == ["a", "b", "same"]
    assert os.path.samefile(made.tree / "lib" / "a", made.tree / "lib" / "same")
    assert os.readlink(made.tree / "out") == str(outside)
    # As in a container: the same place below the image's own root.
    assert (made.tree / str(outside).lstrip("/") / "escaped").read_bytes() == b"x"


def test_devices_and_privileges_stay_out(tmp_path: Path, store: TemplateStore) -> None:
    program = tarfile.TarInfo("su")
    program.mode = 0o4755
    members = [
        special("null", tarfile.CHRTYPE),
        special("disk", tarfile.BLKTYPE),
        special("pipe", tarfile.FIFOTYPE),
        ("su", program),
    ]
    made = store.add_image(layout(tmp_path / "image", [members]))
    assert os.listdir(made.tree) == ["su"]
    assert (made.tree / "su").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (("../outside", b"x"), "outside itself"),
        (("a/../../outside", b"x"), "outside itself"),
        (special("stolen", tarfile.LNKTYPE, "../../secret"), "outside itself"),
        (special("stolen", tarfile.LNKTYPE, "/etc/passwd"), "missing file"),
        (("etc/kept.conf/below", b"x"), "not a folder"),
    ],
)
def test_a_hostile_layer_is_refused_and_leaves_nothing(
    tmp_path: Path, store: TemplateStore, member: Member, said: str
) -> None:
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(UsageError, match=said):
        store.add_image(layout(tmp_path / "image", [FIRST, [member]]))
    assert os.listdir(tmp_path / "store") == []
    assert not (tmp_path / "outside").exists()


def test_a_damaged_image_is_refused(tmp_path: Path, store: TemplateStore) -> None:
    image = layout(tmp_path / "image", [FIRST])
    largest = max((image / "blobs" / "sha256").iterdir(), key=lambda path: b"\x1f" in path.read_bytes()[:1])
    changed = layer([("app/main.py", b"changed\n")])
    largest.write_bytes(gzip.compress(changed))
    with pytest.raises(UsageError, match="does not match"):
        store.add_image(image)
    largest.unlink()
    with pytest.raises(UsageError, match=r"layer .* is missing"):
        store.add_image(image)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="not an image"):
        store.add_image(tmp_path / "empty")


def test_a_blob_that_is_a_link_is_not_read(tmp_path: Path, store: TemplateStore) -> None:
    image = layout(tmp_path / "image", [FIRST])
    for blob in (image / "blobs" / "sha256").iterdir():
        elsewhere = tmp_path / blob.name
        blob.rename(elsewhere)
        blob.symlink_to(elsewhere)
    with pytest.raises(UsageError, match="is missing"):
        store.add_image(image)


SHA256 = "sha256:" + "0" * 64
ODD: list[Any] = ["x", 5, None, [], ["x"], [None], {}, True, 1.5, [[]], {"digest": ["x"]}, {"digest": {}}]
DOCUMENTS: list[tuple[str, Any]] = [
    ("index.json", {"manifests": [SHA256]}),
    ("index.json", {"manifests": [{"digest": SHA256, "platform": "linux"}]}),
    *(("index.json", odd) for odd in ODD),
    *(("index.json", {"manifests": odd}) for odd in ODD),
    *(("index.json", {"manifests": [odd]}) for odd in ODD),
    *(("manifest.json", odd) for odd in ODD),
    *(("manifest.json", [odd]) for odd in ODD),
    *(("manifest.json", [{"Config": odd, "Layers": odd}]) for odd in ODD),
]


@pytest.mark.parametrize(("name", "document"), DOCUMENTS)
def test_a_document_of_another_shape_is_refused(
    tmp_path: Path, store: TemplateStore, name: str, document: Any
) -> None:
    (tmp_path / "image").mkdir()
    (tmp_path / "image" / name).write_text(json.dumps(document))
    with pytest.raises(UsageError):
        store.add_image(tmp_path / "image")


@pytest.mark.parametrize("part", ["config", "layers", "rootfs", "diff_ids"])
@pytest.mark.parametrize("odd", ODD)
def test_a_part_of_another_shape_is_refused(
    tmp_path: Path, store: TemplateStore, part: str, odd: Any
) -> None:
    blobs = tmp_path / "image" / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def blob(value: Any) -> dict[str, Any]:
        data = json.dumps(value).encode()
        (blobs / sha256(data).partition(":")[2]).write_bytes(data)
        return {"digest": sha256(data)}

    rootfs = odd if part == "rootfs" else {"diff_ids": odd if part == "diff_ids" else [SHA256]}
    manifest = {"config": blob({"rootfs": rootfs}), "layers": [{"digest": SHA256}]}
    if part in manifest:
        manifest[part] = odd
    (tmp_path / "image" / "index.json").write_text(json.dumps({"manifests": [blob(manifest)]}))
    with pytest.raises(UsageError):
        store.add_image(tmp_path / "image")


def test_documents_nested_without_end_and_names_that_lead_out_are_refused(
    tmp_path: Path, store: TemplateStore
) -> None:
    image = tmp_path / "image"
    image.mkdir()
    (image / "index.json").write_text("[" * 1_000_000)
    with pytest.raises(UsageError, match="not valid JSON"):
        store.add_image(image)
    (image / "index.json").unlink()
    config = json.dumps({"rootfs": {"diff_ids": [sha256(b"secret")]}}).encode()
    outside = tmp_path / f"{sha256(config).partition(':')[2]}.json"
    outside.write_bytes(config)
    (tmp_path / "secret").write_bytes(b"secret")
    for name in (f"../{outside.name}", str(outside)):
        listed = [{"Config": name, "Layers": ["../secret"]}]
        (image / "manifest.json").write_text(json.dumps(listed))
        with pytest.raises(UsageError, match="configuration is missing"):
            store.add_image(image)
