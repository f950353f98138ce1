"""A fleet's sources: repositories that borrow from others, archives from elsewhere, checkpoints of a log."""

import contextlib
import io
import shutil
from pathlib import Path

from bench.escapes.host.attacks.fleet_templates import long_links
from bench.escapes.host.fleet_sources import (
    FOLDER,
    LINK,
    Entry,
    State,
    add,
    archive,
    begin_log,
    found_elsewhere,
    host,
    recover,
    segment,
)
from bench.escapes.host.place import Place
from handtools.core.errors import HandtoolsError
from handtools.fleet.journal_archive import unpack_journal
from handtools.fleet.templates import TemplateStore
from handtools.fleet.workspace_log import LogStore

_THEIRS = """
git init -q -b main {folder}; cd {folder}; git config user.name a; git config user.email a@example.com
echo {secret} > secret; git add .; git commit -qm one; git rev-parse HEAD
"""


def _templates_hold(place: Place, sources: dict[Path, str]) -> str | None:
    """Whether a template of a source, at a commit, holds what is another's."""
    place.begin()
    for source, commit in sources.items():
        for with_repository in (True, False):
            store = TemplateStore(place.base / "templates" / f"{source.name}-{with_repository}")
            try:
                made = store.add_git_commit(source, commit, with_repository=with_repository)
            except HandtoolsError:
                continue
            if (made.tree / "secret").exists():
                return f"a template of {source.name} holds a file of another repository"
    return None


async def repository_that_borrows_objects(place: Place) -> str | None:
    """The objects of the source are those of another repository of this machine, by alternates; it names a commit there."""
    theirs, source = place.base / "theirs", place.base / "source"
    commit = place.shell(_THEIRS.format(folder=theirs, secret=place.secrets["OTHER"]))
    place.shell(f"git init -q {source}; echo {theirs}/.git/objects > {source}/.git/objects/info/alternates")
    return _templates_hold(place, {source: commit})


async def repository_that_is_elsewhere(place: Place) -> str | None:
    """`.git` of the source is a file, or a link, that leads to another repository of this machine."""
    theirs, one, two = (place.base / name for name in ("theirs", "one", "two"))
    place.shell(_THEIRS.format(folder=theirs, secret=place.secrets["OTHER"]))
    place.shell(
        f"mkdir {one} {two}; echo gitdir: {theirs}/.git > {one}/.git; ln -s {theirs}/.git {two}/.git"
    )
    return _templates_hold(place, {one: "HEAD", two: "HEAD"})


async def tarball_that_says_a_name_twice(place: Place) -> str | None:
    """One name is a folder, then a link, then a folder again, each time spelled otherwise."""
    out = str(place.outside)
    archives = (
        archive(Entry("d", FOLDER, mode=0o755), Entry("./d", LINK, out), Entry("d//evil")),
        archive(Entry("d", LINK, out), Entry("d/", FOLDER, mode=0o777), Entry("d/evil")),
        archive(Entry("d/e", FOLDER, mode=0o755), Entry("d", LINK, out), Entry("d/e", FOLDER, mode=0o777), Entry("d/evil")),
        archive(Entry("a", LINK, "b"), Entry("b", LINK, "c"), Entry("c", LINK, out), Entry("a/evil")),
        archive(Entry("a/b/c", FOLDER, mode=0o755), Entry("a/b/c/up", LINK, "../../.."), Entry("up", LINK, "a/b/c/up/.."), Entry("up/evil")),
        archive(Entry(".", LINK, out), Entry("evil")),
        archive(Entry("", FOLDER, mode=0o777), Entry("./", LINK, out), Entry("./evil")),
    )  # fmt: skip
    place.begin()
    store, said = host(place, "one"), []
    for number, data in enumerate(archives):
        file = place.base / f"{number}.tar"
        file.write_bytes(data)
        said.append(await add(store, "tarball", file))
    await store.aclose()
    return next(filter(None, said), None) or found_elsewhere(place, "evil")


async def archive_of_a_journal(place: Place) -> str | None:
    """A host that is not honest sends the journal of a workspace as an archive with long links."""
    place.begin()
    with contextlib.suppress(HandtoolsError, OSError, ValueError):
        unpack_journal(
            io.BytesIO(archive(*long_links(str(place.outside)), Entry("out/evil"))), place.base / "journal"
        )
    # What is below the folder of the journal, where absolute links lead too, is in its place.
    shutil.rmtree(place.base / "journal", ignore_errors=True)
    return found_elsewhere(place, "evil")


async def checkpoint_that_leads_out(place: Place) -> str | None:
    """The states that lead out are in a checkpoint, which stands for all segments."""
    name = await begin_log(place)
    place.begin()
    link = State("l", "link", 0, str(place.outside).encode())
    cases = ((State("../evil"),), (link, State("l/evil")), (link, State("l", "folder", 0o777, b"")))
    for number, states in enumerate(cases):

        def change(log: LogStore, _: Path, states: tuple[State, ...] = states) -> None:
            log.put_checkpoint(name, max(log.list_log_objects(name).segments) + 1, segment(states))

        found = await recover(place, name, on=f"host-{number}", change=change)
        if found := found_elsewhere(place, "evil") or found:
            return found
    return None


async def head_that_names_a_template_by_a_path(place: Place) -> str | None:
    """The log of a workspace begins with a template whose name goes up to another folder of the host."""
    name = await begin_log(place)
    place.begin()
    found = None
    for number, path in enumerate(("../evil", "../../evil")):

        def change(_: LogStore, folder: Path, path: str = path) -> None:
            (template,) = (folder / "templates").iterdir()
            (folder / "templates" / path).write_bytes(template.read_bytes())
            (folder / "workspaces" / name / "head").write_text(f'["{path}", "", "", 0]')

        found = found or await recover(place, name, on=f"host-{number}", change=change)
    made = [str(file.parent) for file in place.base.rglob("evil/facts.json")]
    return found or (f"written elsewhere: {', '.join(made)}" if made else None)
