"""Landing: what a command or a change of mind leaves in the workspace without a question."""

import os

from bench.escapes.host.place import Place


async def names_of_our_own_temporaries(place: Place) -> None:
    """In a large new folder, names like those of our temporaries, which lists leave out: a link that leads out, a hook."""
    own = ".handtools-" + "0123456789ab" * 2
    await place.bash(
        f"mkdir -p big/{own}; cd big; for i in $(seq 300); do echo $i > $i; done; mkdir {own}/.vscode;"
        f"echo evil > {own}/.vscode/tasks.json; ln -s {place.outside} {own}/out; mkdir d; ln -s {place.outside} d/{own}"
    )
    await place.call("list", path="big")


async def repository_by_a_change_done_again(place: Place) -> str | None:
    """A HEAD is written and taken back; the rest of a repository is written; then the HEAD is done again."""
    await place.call("write", path="bare/HEAD", content="ref: refs/heads/main\n")
    await place.call("undo", scope="path", name="bare/HEAD")
    await place.bash(
        'mkdir -p bare/objects bare/refs/heads; printf "[core]\\n\\tfsmonitor = ./evil\\n" > bare/config'
    )
    await place.call("undo", scope="path", name="bare/HEAD", action="redo")
    return _is_one(place, "bare")


async def repository_whose_head_comes_back(place: Place) -> str | None:
    """An archive's harmless repository loses its HEAD, gets other programs to run, and its HEAD is brought back."""
    place.allow("bare")  # that it loses its HEAD is the attack itself
    place.put("bare/HEAD", "ref: refs/heads/main\n")
    for folder in ("objects", "refs/heads"):
        place.put(f"bare/{folder}/.keep", "")
    await place.bash("rm bare/HEAD")
    await place.call("write", path="bare/config", content="[core]\n\tfsmonitor = ./evil\n")
    await place.call("undo", scope="path", name="bare/HEAD")
    return _is_one(place, "bare")


def _is_one(place: Place, folder: str) -> str | None:
    parts = ("HEAD", "config", "objects", "refs")
    whole = all((place.workspace / folder / part).exists() for part in parts)
    return f"changed without a question: {folder} is a repository with a configuration" if whole else None


async def _unasked(place: Place, *paths: str) -> str | None:
    """Files that programs run by themselves: half by a command, half by our own tools."""
    for number, path in enumerate(paths):
        if number % 2:
            await place.call("write", path=path, content="evil\n")
        else:
            await place.bash(f"mkdir -p $(dirname '{path}'); echo evil > '{path}'")
    made = [path for path in paths if (place.workspace / path).exists()]
    return f"changed without a question: {', '.join(made)}" if made else None


async def other_version_control(place: Place) -> str | None:
    """Mercurial, Jujutsu and Breezy run what a repository's own settings name, as a prompt or an editor asks them."""
    return await _unasked(
        place, ".hg/hgrc", ".jj/repo/config.toml", ".bzr/branch/branch.conf", "sub/.hg/hgrc"
    )


async def more_editors(place: Place) -> str | None:
    """Helix, Sublime Text, Nova, Kate, Neovim and Eclipse start programs that a folder's settings name."""
    return await _unasked(
        place, ".helix/languages.toml", "x.sublime-project", ".nova/Configuration.json", ".kateproject",
        ".config/nvim/init.lua", ".vim/vimrc", ".settings/x.prefs", ".externalToolBuilders/a.launch",
    )  # fmt: skip


async def more_agents(place: Place) -> str | None:
    """Other agents start the servers, or run the hooks, that a folder's settings name."""
    return await _unasked(
        place, ".qwen/settings.json", ".amazonq/mcp.json", ".trae/mcp.json", ".junie/mcp/mcp.json",
        ".factory/mcp.json", ".augment/settings.json", ".copilot/mcp-config.json", ".goose/config.yaml",
        ".kilocode/mcp.json", ".github/hooks/a.json",
    )  # fmt: skip


async def more_interpreters(place: Place) -> str | None:
    """Interpreters and consoles run a file of the folder that they are started in."""
    return await _unasked(
        place, ".ghci", ".iex.exs", ".octaverc", ".psqlrc", ".sqliterc", ".screenrc", ".inputrc", ".xinitrc",
        ".ocamlinit", ".config/nushell/config.nu",
    )  # fmt: skip


async def more_build_services(place: Place) -> str | None:
    """Other services run what a pushed repository says, with its secrets."""
    return await _unasked(
        place, ".semaphore/semaphore.yml", ".builds/a.yml", ".build.yml", "cloudbuild.yaml", "buildspec.yml",
        "bitrise.yml", "codemagic.yaml", ".teamcity/settings.kts", ".tekton/a.yaml", "azure-pipelines.yaml",
    )  # fmt: skip


async def closed_root(place: Place) -> None:
    """A command closes the workspace's own folder, for everybody, or opens it."""
    await place.bash("echo a > made.txt; chmod 000 .")
    mode = place.workspace.stat().st_mode & 0o777
    await place.bash("chmod 7777 .")
    after = place.workspace.stat().st_mode & 0o7777
    if mode == 0 or after & 0o6002:
        place.tell("found", f"the workspace's own folder has mode {mode:o}, then {after:o}")


async def times_beyond_all_measure(place: Place) -> None:
    """Files were changed before the year 1 and after the year 9999, as far as the disk can say so."""
    for number, when in enumerate((-(1 << 40), -1, 1 << 34, 253_402_300_800, 1 << 50)):
        file = place.put(f"times/{number}.txt", "text\n")
        try:
            os.utime(file, (when, when))
        except (OSError, OverflowError):
            continue
    await place.call("list", path="times", details=True)
    await place.call("list", path="times")
    await place.call("find", pattern="times/*", sort="modified")
    await place.call("read", path="times/0.txt")
    await place.call("edit", path="times/0.txt", old_string="text", new_string="other")
    await place.bash(
        "touch -d @-99999999999 times/new.txt; touch -d @253402300800 times/1.txt; ls -l times"
    )
