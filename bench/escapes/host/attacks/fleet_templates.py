"""Templates of a fleet: archives, images and repositories that lead out, or that have our git run a program."""

import asyncio
import os
import tarfile
from typing import Any

from bench.escapes.host.fleet_sources import (
    FILE,
    FOLDER,
    HARD_LINK,
    LINK,
    Entry,
    add,
    archive,
    found_elsewhere,
    host,
    image,
)
from bench.escapes.host.place import Place
from handtools.core.errors import HandtoolsError
from handtools.fleet.templates import TemplateStore

SECONDS = 8.0
"""How long a template of a few kilobytes may take."""


def long_links(target: str) -> list[Entry]:
    """Links through folders with such long names that a path can't be resolved as a whole; the last leads to a target."""
    entries, path = [], ""
    for step in "abcdefghijklmnop":
        entries += [
            Entry(os.path.join(path, "d" * 247), FOLDER, mode=0o755),
            Entry(os.path.join(path, step), LINK, "d" * 247),
        ]
        path = os.path.join(path, "d" * 247)
    through = "/".join("abcdefghijklmnop") + "/" + "l" * 254
    return [
        *entries,
        Entry(through, LINK, "../" * 16),
        Entry("out", LINK, f"{through}/{'../' * 16}{target.lstrip('/')}"),
    ]


async def _tarballs(place: Place, *archives: bytes) -> str | None:
    place.begin()
    store, said = host(place, "one"), []
    for number, data in enumerate(archives):
        file = place.base / f"{number}.tar"
        file.write_bytes(data)
        said.append(await add(store, "tarball", file))
    await store.aclose()
    return next(filter(None, said), None) or found_elsewhere(place, "evil")


async def tarball_with_long_links(place: Place) -> str | None:
    """A chain of links is longer than a path may be, so that a check of the whole path sees nothing of where it leads."""
    return await _tarballs(place, archive(*long_links(str(place.outside)), Entry("out/evil")))


async def tarball_that_leads_out(place: Place) -> str | None:
    """Names with `..`, absolute ones, files behind links, and hard links to a file outside, which is then written."""
    out, secret = str(place.outside), f"{place.outside}/secret.txt"
    up = [archive(Entry("../" * depth + "evil")) for depth in range(1, 7)]
    return await _tarballs(
        place,
        *up,
        archive(Entry(f"{out}/evil")),
        archive(Entry("l", LINK, out), Entry("l/evil")),
        archive(Entry("a", FOLDER, mode=0o755), Entry("a/l", LINK, ".."), Entry("a/l/m", LINK, ".."), Entry("a/l/m/evil")),
        archive(Entry("h", HARD_LINK, secret), Entry("h", FILE, data=b"evil")),
        archive(Entry("l", LINK, secret), Entry("h", HARD_LINK, "l"), Entry("h", FILE, data=b"evil")),
        archive(Entry("l", LINK, out), Entry("l", FOLDER, mode=0o777)),
        archive(Entry("d", FOLDER, mode=0o755), Entry("d", LINK, out), Entry("d/evil", FOLDER, mode=0o755)),
    )  # fmt: skip


async def tarball_with_other_names_in_its_headers(place: Place) -> str | None:
    """Extended headers say another path, another target or another size than the entry itself."""
    out = str(place.outside)
    return await _tarballs(
        place,
        archive(Entry("a", headers={"path": f"{out}/evil"})),
        archive(Entry("a", headers={"path": "../../../evil"})),
        archive(Entry("l", LINK, "a", headers={"linkpath": out}), Entry("l/evil")),
        archive(Entry("a", headers={"size": "-1"}), Entry("b", headers={"size": str(1 << 60)})),
        archive(Entry("a" * 300), Entry("/".join(["b" * 200] * 30)), Entry("c\x00d"), Entry("e\udcff")),
        archive(Entry("a", headers={"SCHILY.xattr.security.capability": "x", "uid": "0", "mtime": "nan"})),
    )


async def tarball_with_devices_and_privileges(place: Place) -> str | None:
    """Devices, pipes, and files that run with the rights of their owner."""
    kinds = (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
    return await _tarballs(
        place,
        *(archive(Entry("special", kind, mode=0o666)) for kind in kinds),
        archive(Entry("program", mode=0o6755), Entry("shared", FOLDER, mode=0o2777)),
    )


async def tarball_of_almost_nothing(place: Place) -> str | None:
    """A sparse file says that it has a terabyte, almost all of it holes."""
    headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": "big",
        "GNU.sparse.realsize": str(1 << 40),
    }
    data = b"1\n0\n1\n".ljust(512, b"\0") + b"x".ljust(512, b"\0")
    working = asyncio.ensure_future(_tarballs(place, archive(Entry("big", data=data, headers=headers))))
    done, _ = await asyncio.wait([working], timeout=SECONDS)
    return working.result() if done else f"a tarball of 4 kB was still being read after {SECONDS:g} s"


def _repository(place: Place, name: str, more: str = "") -> str:
    folder = place.base / name
    place.shell(
        f"git init -q -b main {folder}; cd {folder}; git config user.name a; git config user.email a@example.com;"
        f"echo a > a; echo '* filter=z' > .gitattributes; git add .; git commit -qm one\n{more}"
    )
    return str(folder)


def _commit(place: Place, source: str, *, commit: str = "HEAD") -> None:
    place.begin()
    for with_repository in (True, False):
        store = TemplateStore(place.base / "templates" / f"{with_repository}")
        try:
            store.add_git_commit(source, commit, with_repository=with_repository)
        except HandtoolsError:
            continue


async def commit_with_a_filter(place: Place) -> None:
    """The repository's own configuration has a filter for what is checked out or packed."""
    setting = 'git config filter.z.smudge "$PAYLOAD; cat"; git config filter.z.process "$PAYLOAD"; git config filter.z.required true'
    _commit(place, _repository(place, "theirs", setting))


PROMISED = """
git config core.repositoryFormatVersion 1; git config extensions.partialClone origin; git config remote.origin.promisor true
git config remote.origin.url ssh://127.0.0.1:1/x; git config core.sshCommand "$PAYLOAD; false"
"""


async def commit_with_a_missing_file(place: Place) -> None:
    """A file of the commit is missing, and a remote promises it that is reached by a program."""
    lose = "B=$(git rev-parse HEAD:a); rm -f .git/objects/${B:0:2}/${B:2}"
    _commit(place, _repository(place, "theirs", PROMISED + lose))


async def commit_that_is_missing(place: Place) -> None:
    """The commit itself is missing, so that a look for its name is enough."""
    lose = "C=$(git rev-parse HEAD); rm -f .git/objects/${C:0:2}/${C:2}"
    _commit(place, _repository(place, "theirs", PROMISED + lose))


async def commit_with_programs_in_the_configuration(place: Place) -> None:
    """The repository's configuration names programs for everything else that git might do on the way."""
    keys = ("core.fsmonitor core.pager pager.archive core.gitProxy core.askPass uploadpack.packObjectsHook core.alternateRefsCommand"
            " credential.helper tar.tar.command tar.tar.gz.command gpg.program diff.external")  # fmt: skip
    more = f'for key in {keys}; do git config $key "$PAYLOAD;false"; done; for w in archive fetch rev-parse upload-pack; do git config alias.$w "!$PAYLOAD"; done'
    hooks = "; mkdir -p .git/hooks; for h in post-checkout reference-transaction post-index-change pre-auto-gc; do printf '#!/bin/sh\\n%s\\n' \"$PAYLOAD\" > .git/hooks/$h; chmod +x .git/hooks/$h; done"
    _commit(place, _repository(place, "theirs", more + hooks))


async def commit_that_is_replaced(place: Place) -> str | None:
    """`refs/replace` has the reviewed commit stand for another one: the template holds what nobody reviewed."""
    source = _repository(
        place,
        "theirs",
        "C=$(git rev-parse HEAD); echo evil > a; git commit -qam evil; E=$(git rev-parse HEAD); git reset -q --hard $C; git replace $C $E",
    )
    place.begin()
    for with_repository in (True, False):
        store = TemplateStore(place.base / "templates" / f"{with_repository}")
        try:
            made = store.add_git_commit(source, "HEAD", with_repository=with_repository)
        except HandtoolsError:
            continue
        if (made.tree / "a").read_text() != "a\n":
            return f"a commit gave other content than it has ({with_repository=})"
    return None


async def image_that_leads_out(place: Place) -> str | None:
    """Layers with names, links, hard links and whiteouts that lead out, devices and privileges."""
    out, victim = str(place.outside), f"{place.outside}/secret.txt"
    link = archive(Entry("l", LINK, out))
    cases = (
        (archive(Entry("../evil")),), (archive(Entry("../../../evil")),), (archive(Entry(f"{out}/evil")),),
        (archive(Entry("l", LINK, out), Entry("l/evil")),), (archive(Entry("l", LINK, "../")), archive(Entry("l/evil"))),
        (archive(Entry("h", HARD_LINK, victim), Entry("h", data=b"evil")),), (archive(Entry("h", HARD_LINK, "../outside/secret.txt")),),
        (archive(Entry("s", mode=0o6755)),), (archive(Entry("d", tarfile.CHRTYPE, mode=0o666)),), (archive(Entry("p", tarfile.FIFOTYPE)),),
        (archive(Entry("a")), archive(Entry("../../outside/.wh.secret.txt", data=b""))), (link, archive(Entry("l/.wh.secret.txt", data=b""))),
        (link, archive(Entry("l/.wh..wh..opq", data=b""))), (archive(Entry(".wh.", data=b"")),), (archive(Entry(".wh...", data=b"")),),
        (archive(Entry("a", LINK, "b"), Entry("b", LINK, "a"), Entry("a/x")),), (archive(Entry("a/b")), archive(Entry("a")), archive(Entry("a/b"))),
        (archive(Entry("a", FOLDER, mode=0o755), Entry("a/b", HARD_LINK, "a")),), (archive(Entry("x" * 300)),), (archive(Entry("/".join("d" * 300))),),
        (archive(*long_links(out), Entry("out/evil")),), (archive(*long_links(out)), archive(Entry("out/.wh.secret.txt", data=b""))),
    )  # fmt: skip
    place.begin()
    store, said = host(place, "one"), []
    for number, layers in enumerate(cases):
        said.append(await add(store, "image", image(place.base / f"image-{number}", *layers)))
    await store.aclose()
    return next(filter(None, said), None) or found_elsewhere(place, "evil")


async def image_with_odd_documents(place: Place) -> str | None:
    """The index of an image has values of other kinds than it should: each must be refused, and none is a bug."""
    digest = "sha256:" + "0" * 64
    documents: tuple[Any, ...] = (
        {"manifests": 5}, {"manifests": ["x"]}, {"manifests": [{"digest": None}]}, {"manifests": [{"digest": "sha256:../../x"}]}, [1], "x", None,
        {"manifests": [{"digest": digest, "platform": "linux"}]}, {"manifests": [[digest]]}, {"manifests": {"digest": digest}}, {"manifests": [None, {}]},
    )  # fmt: skip
    place.begin()
    store, said = host(place, "one"), []
    for number, document in enumerate(documents):
        source = image(
            place.base / f"image-{number}", archive(Entry("a")), index=document or {"manifests": None}
        )
        said.append(await add(store, "image", source))
    await store.aclose()
    return next(filter(None, said), None)
