"""Submodules: names and places by which a submodule's own git folder is taken for data of the repository around it."""

from bench.escapes.host.person_repository import begin_repository, submodule_script, use_submodule
from bench.escapes.host.place import Place


async def name_that_leads_through_the_reflogs(place: Place) -> None:
    """The submodule is called `x/logs/refs/y`, so that its configuration lies where reflogs lie."""
    begin_repository(place)
    await use_submodule(place, submodule_script(place, "x/logs/refs/y"))


async def submodule_that_every_checkout_updates(place: Place) -> None:
    """The same, with settings by which an ordinary checkout goes into submodules."""
    begin_repository(place)
    name = "x/logs/refs/y"
    more = f"git config submodule.recurse true; git config submodule.active .; git config submodule.{name}.url ./nowhere"
    typed = (
        "git status",
        "git checkout .",
        "git reset --hard",
        "git stash",
        "git checkout -q -b other",
        "git status",
    )
    await use_submodule(place, submodule_script(place, name) + more, typed=typed)


async def name_that_leads_through_the_packs(place: Place) -> None:
    """The git folder lies among the packs of another submodule; its configuration is an ordinary file, by commondir."""
    begin_repository(place)
    await use_submodule(place, submodule_script(place, "x/objects/pack", elsewhere="plain"))


async def name_that_leads_through_a_rebase(place: Place) -> None:
    """The git folder lies where the state of a rebase lies."""
    begin_repository(place)
    await use_submodule(place, submodule_script(place, "x/rebase-merge", elsewhere="plain"))


async def name_that_leads_through_a_sequencer(place: Place) -> None:
    """The git folder lies where the state of a cherry-pick lies."""
    begin_repository(place)
    await use_submodule(place, submodule_script(place, "x/sequencer", elsewhere="plain"))


async def name_that_leads_through_an_index_of_commits(place: Place) -> None:
    """The git folder lies among the commit graphs of another submodule."""
    begin_repository(place)
    await use_submodule(place, submodule_script(place, "x/objects/info/commit-graphs", elsewhere="plain"))


async def names_of_several_words_of_git(place: Place) -> None:
    """The name is made of many words of git's own, one after another, also with reflogs in the middle."""
    begin_repository(place)
    for name in (
        "modules/x/logs/refs/modules/y",
        "hooks/x/logs/refs/heads/main",
        "worktrees/x/logs/refs/z",
    ):
        await use_submodule(place, f"rm -rf lib; {submodule_script(place, name)}")


async def submodule_of_a_submodule(place: Place) -> None:
    """The submodule is below an honest one, in `modules` of `modules`."""
    begin_repository(place)
    honest = submodule_script(place, "honest", settings="[core]\\n\\tabbrev = 8\\n").replace(
        "path = lib", "path = outer"
    )
    honest = honest.replace("$C,lib", "$C,outer")
    await place.bash(honest)
    place.person("git submodule update --init")
    inner = submodule_script(
        place, "a/logs/refs/b", git_folder=".git/modules/honest/modules/a/logs/refs/b", superproject="outer"
    )
    await use_submodule(place, inner, folder="outer")


async def submodule_of_a_linked_worktree(place: Place) -> None:
    """The submodule belongs to a second worktree of the person's, whose modules lie in `worktrees`."""
    begin_repository(place, "git worktree add -q side; git -C side config user.name a")
    script = submodule_script(
        place, "a/logs/refs/b", git_folder=".git/worktrees/side/modules/a/logs/refs/b", superproject="side"
    )
    await use_submodule(place, script, folder="side")


async def head_that_comes_last(place: Place) -> None:
    """The folder is filled while it has no HEAD and is no repository; the HEAD comes by renaming, in a later command."""
    begin_repository(place)
    folder = ".git/modules/x/logs/refs/y"
    script = (
        submodule_script(place, "x/logs/refs/y") + f"mv {folder}/HEAD {folder}/ORIG; git rev-parse HEAD"
    )
    await use_submodule(place, script, f"mv {folder}/ORIG {folder}/HEAD")
