"""More files of the workspace that the person's configuration of git names."""

from bench.escapes.host.person_repository import begin_repository, write_person_config
from bench.escapes.host.place import Place

SCRIPT = "#!/bin/sh\ncat\n"


async def _changed(place: Place, path: str, *typed: str) -> None:
    await place.bash(f"sed -i '2i {place.payload}' {path}")
    for line in typed:
        place.person(line)


async def driver_of_merges(place: Place) -> None:
    """The program that merges a kind of file lies in the workspace, behind options and place holders."""
    place.put("tools/merge.sh", "#!/bin/sh\nexit 0\n", mode=0o755)
    place.put(".gitattributes", "*.dat merge=m\n")
    place.put("a.dat", "a\n")
    begin_repository(
        place,
        "git config merge.m.driver './tools/merge.sh --ours %O %A %B'; git add .; git commit -qm dat; git checkout -q -b theirs;"
        "echo b > a.dat; git commit -qam b; git checkout -q main; echo c > a.dat; git commit -qam c",
    )
    await _changed(place, "tools/merge.sh", "git merge theirs")


async def template_of_new_repositories(place: Place) -> None:
    """`init.templateDir` lies in the workspace: hooks that come there are in the person's next clone."""
    place.put("tools/template/description", "a template\n")
    write_person_config(place, f"[init]\n\ttemplateDir = {place.workspace}/tools/template\n")
    begin_repository(place)
    hook = f"printf '#!/bin/sh\\n{place.payload}\\n' > tools/template/hooks/post-checkout"
    await place.bash(f"mkdir -p tools/template/hooks; {hook}; chmod +x tools/template/hooks/post-checkout")
    place.person(f"git clone -q . {place.base}/clone")


async def wrapper_of_ssh(place: Place) -> None:
    """`core.sshCommand` is a script of the workspace; the next fetch runs it."""
    place.put("tools/ssh.sh", "#!/bin/sh\nexit 1\n", mode=0o755)
    begin_repository(
        place, "git config core.sshCommand 'tools/ssh.sh -q'; git remote add origin ssh://127.0.0.1:1/x"
    )
    await _changed(place, "tools/ssh.sh", "git fetch")


async def program_of_signatures(place: Place) -> None:
    """`gpg.program` is a script of the workspace; the next commit runs it."""
    place.put("tools/sign.sh", SCRIPT, mode=0o755)
    begin_repository(
        place, f"git config gpg.program {place.workspace}/tools/sign.sh; git config commit.gpgSign true"
    )
    await _changed(place, "tools/sign.sh", "git commit --allow-empty -qm x")


async def editor_of_the_workspace(place: Place) -> None:
    """The editor for commit messages is a script of the workspace."""
    place.put("tools/editor.sh", SCRIPT, mode=0o755)
    begin_repository(place, "git config core.editor tools/editor.sh")
    await _changed(place, "tools/editor.sh", "git commit --allow-empty -q")


async def file_that_an_included_file_includes(place: Place) -> None:
    """The configuration includes a file of the workspace, and that one includes another, which a command changes."""
    place.put("tools/first.gitconfig", "[include]\n\tpath = second.gitconfig\n")
    place.put("tools/second.gitconfig", "[core]\n\tabbrev = 8\n")
    begin_repository(place, "git config include.path ../tools/first.gitconfig")
    setting = f'[core]\\n\\tfsmonitor = "{place.payload};false"\\n'
    await place.bash(f"printf '{setting}' >> tools/second.gitconfig")
    place.person("git status")


async def hooks_behind_a_link(place: Place) -> None:
    """The folder that `core.hooksPath` names is a link; a command changes the hook where it really is."""
    place.put("tools/real/pre-commit", SCRIPT, mode=0o755)
    place.link("hooks", "tools/real")
    begin_repository(place, "git config core.hooksPath hooks")
    await _changed(place, "tools/real/pre-commit", "git commit --allow-empty -qm x")
