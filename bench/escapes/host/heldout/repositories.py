"""Repositories: what our process believes of a `.git` that an archive brought, and of files with rules about names."""

from bench.escapes.host.place import Place

_OTHER = """
mkdir "$OUT/theirs"; cd "$OUT/theirs"; git init -q -b main .
git config user.email a@example.com; git config user.name a
seq 200 > gone.txt; git add gone.txt; git commit -qm one
git mv gone.txt {secret}.txt; echo more >> {secret}.txt; git commit -qam two; git repack -adq
"""


async def record_of_a_foreign_repository(place: Place) -> None:
    """A worktree's record, brought along, names another repository of this machine as its own: a command may read it."""
    secret = place.secrets["OTHER"]
    theirs = place.outside / "theirs"
    theirs.mkdir()
    (theirs / "HEAD").write_text("ref: refs/heads/main\n")
    (theirs / "config").write_text(f"url = https://{secret}@example.com\n")
    place.put(".git", "gitdir: record\n")
    place.put("record/gitdir", f"{place.workspace}/.git\n")
    place.put("record/commondir", f"{theirs}\n")
    await place.bash(f"cat {theirs}/config; ls -la {theirs}")


async def refs_and_packs_that_are_links(place: Place) -> None:
    """In `.git`, the refs and the packs are links into another repository: its history tells how files are called."""
    secret = place.secrets["OTHER"]
    place.shell(
        _OTHER.format(secret=secret)
        + 'cd "$OLDPWD"; mkdir -p .git/objects; echo "ref: refs/heads/main" > .git/HEAD\n'
        'ln -s "$OUT/theirs/.git/refs" .git/refs; ln -s "$OUT/theirs/.git/objects/pack" .git/objects/pack\n'
    )
    place.put(f"{secret}.txt", "here\n")
    result = await place.call("read", path="gone.txt")
    if secret in repr(result.content):
        place.tell("found", "the history of another repository was told")


async def worktree_record_of_pipes(place: Place) -> None:
    """`.git` leads to a record whose files are pipes: whoever opens them waits for ever."""
    place.put(".git", "gitdir: record\n")
    place.shell("mkdir record; mkfifo record/gitdir record/commondir record/HEAD")
    await place.bash("echo ready")
    await place.call("list")
    await place.call("grep", pattern="one")
    await place.call("read", path="missing.txt")


async def worktree_record_without_end(place: Place) -> None:
    """`.git` leads to a record whose files are links to a device that never ends."""
    place.put(".git", "gitdir: record\n")
    for name in ("gitdir", "commondir", "HEAD"):
        place.link(f"record/{name}", "/dev/zero")
    await place.bash("echo ready")
    await place.call("list")
    await place.call("read", path="missing.txt")


async def excludes_that_are_a_private_file(place: Place) -> str | None:
    """The exclude rules of a worktree are a link to a private file: which names are hidden tells what is in it."""
    return await _asked_by_names(place, "shared/info/exclude")


async def ignore_rules_that_are_a_private_file(place: Place) -> str | None:
    """`.gitignore` is a link to a private file: which names are hidden tells what is in it, and bad rules are quoted."""
    return await _asked_by_names(place, ".gitignore")


async def _asked_by_names(place: Place, rules: str) -> str | None:
    secret = place.secrets["OTHER"]
    place.put("prod.key", f"hunter2\n[{secret}\n{{{secret}\n{secret}[z-a]\n")
    place.put(".git", "gitdir: record\n")
    place.put("record/commondir", "../shared\n")
    place.put("shared/HEAD", "ref: refs/heads/main\n")
    place.link(rules, "../../prod.key" if rules.count("/") == 2 else "prod.key")
    for guess in ("hunter1", "hunter2", "hunter3"):
        place.put(f"guesses/{guess}", "guess\n")
    told = [
        await place.call("list", path="guesses"),
        await place.call("find", pattern="hunter*"),
        await place.call("grep", pattern="guess", path="guesses"),
    ]
    for each in told:
        if "hunter1" in each.text and "hunter2" not in each.text:
            return f"told: by its silence about one name, what is in a private file ({each.text[:60]!r})"
    return None
