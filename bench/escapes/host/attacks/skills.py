"""Skills: what is offered to models as instructions is something that they must not see, or too much of it."""

import os

from bench.escapes.host.place import Place

SHELF = ".agents/skills"
HEAD = "---\nname: {name}\ndescription: helps\n---\nbody\n"


async def _all_shown(place: Place, *names: str) -> None:
    await place.call("skill")
    await place.call("skill", near="src/main.py")
    await place.each("skill", "name", names)


async def skill_that_is_a_link(place: Place) -> None:
    """SKILL.md is a link to a private file, whose first lines are listed as a description."""
    place.put("keys.pem", "".join(f"key-{number}={place.secrets['OTHER']}\n" for number in range(60)))
    for name, target in {"a": ".env", "b": "deploy.pem", "c": ".ssh/config", "d": "keys.pem"}.items():
        await place.bash(f"mkdir -p {SHELF}/{name}; ln -s ../../../{target} {SHELF}/{name}/SKILL.md")
    await _all_shown(place, "a", "b", "c", "d", "deploy")


async def skill_folder_that_is_a_link(place: Place) -> None:
    """A skill's folder is a link to one outside, or to a private one."""
    (place.outside / "SKILL.md").write_text(
        f"---\nname: out\ndescription: {place.secrets['OUTSIDE']}\n---\n"
    )
    place.put(".ssh/SKILL.md", f"---\nname: ssh\ndescription: {place.secrets['SSH']}\n---\n")
    place.link(f"{SHELF}/out", place.outside)
    place.link(f"{SHELF}/ssh", "../../.ssh")
    await _all_shown(place, "out", "ssh")


async def shelf_that_is_a_link(place: Place) -> None:
    """The shelf of skills itself is a link: to the folder outside, or to a private one."""
    (place.outside / "x").mkdir()
    (place.outside / "x" / "SKILL.md").write_text(
        f"---\nname: x\ndescription: {place.secrets['OUTSIDE']}\n---\n"
    )
    place.put(".ssh/y/SKILL.md", f"---\nname: y\ndescription: {place.secrets['SSH']}\n---\n")
    place.link(SHELF, place.outside)
    place.link(".claude/skills", "../.ssh")
    await _all_shown(place, "x", "y")


async def files_of_a_skill(place: Place) -> None:
    """Files beside a SKILL.md are links to private ones, and are read as the skill's."""
    place.put(f"{SHELF}/good/SKILL.md", HEAD.format(name="good"))
    place.link(f"{SHELF}/good/ref.md", "../../../.env")
    place.link(f"{SHELF}/good/out.md", place.outside / "secret.txt")
    await _all_shown(place, "good")
    for path in (
        "skill:good/ref.md",
        "skill:good/../../../.env",
        "skill:good/out.md",
        f"{SHELF}/good/ref.md",
    ):
        await place.call("read", path=path)
        await place.call("attach", paths=[path])


async def names_that_are_paths(place: Place) -> None:
    """A skill's own name is a path, or is asked for by one."""
    for number, name in enumerate(("../../../.env", "/etc/passwd", "..", ".env", "a/../../.env")):
        place.put(f"{SHELF}/s{number}/SKILL.md", HEAD.format(name=name))
    await _all_shown(
        place, "../../../.env", "../.env", "..", ".env", "s0", f"../../{place.outside}", "/etc/passwd"
    )


async def private_folder_as_a_skill(place: Place) -> None:
    """A private file lies on a shelf under its own name, and the skill's list of files has it."""
    place.put(f"{SHELF}/good/SKILL.md", HEAD.format(name="good"))
    place.put(f"{SHELF}/good/.env", place.secrets["OTHER"])
    place.put(f"{SHELF}/id_rsa/SKILL.md", f"---\nname: k\ndescription: {place.secrets['OTHER']}\n---\n")
    await _all_shown(place, "good", "k")
    await place.call("read", path=f"{SHELF}/good/.env")


async def aliases_in_the_head(place: Place) -> None:
    """The head of a SKILL.md grows when it is read: anchors and aliases, nested a hundred levels."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    text = "\n".join(lines)
    place.put(f"{SHELF}/bomb/SKILL.md", f"---\nname: bomb\ndescription: *a11\n{text}\n---\n")
    place.put(f"{SHELF}/deep/SKILL.md", f"---\nname: deep\ndescription: {'[' * 20000}\n---\n")
    place.put(
        f"{SHELF}/keys/SKILL.md", "---\nname: keys\n" + "".join(f"k{n}: v\n" for n in range(9000)) + "---\n"
    )
    await _all_shown(place, "bomb", "deep", "keys")


async def endless_skill(place: Place) -> None:
    """SKILL.md and AGENTS.md are pipes, folders, devices or enormous."""
    for name in ("pipe", "zero", "large", "folder"):
        (place.workspace / SHELF / name).mkdir(parents=True)
    os.mkfifo(place.workspace / SHELF / "pipe" / "SKILL.md")
    place.link(f"{SHELF}/zero/SKILL.md", "/dev/zero")
    (place.workspace / SHELF / "folder" / "SKILL.md").mkdir()
    with (place.workspace / SHELF / "large" / "SKILL.md").open("wb") as file:
        file.write(b"---\nname: large\ndescription: d\n---\n")
        file.truncate(3 << 30)
    os.mkfifo(place.workspace / "src" / "AGENTS.md")
    await _all_shown(place, "pipe", "zero", "large", "folder")
    await place.call("read", path="src/main.py")


async def many_skills(place: Place) -> None:
    """A shelf holds ten thousand skills."""
    for number in range(10_000):
        place.put(f"{SHELF}/s{number}/SKILL.md", HEAD.format(name=f"s{number}"))
    await _all_shown(place, "s1", "s9999")


async def swapped_skill(place: Place) -> None:
    """Another process exchanges a SKILL.md and a link to .env, while skills are listed and loaded."""
    place.put(f"{SHELF}/a/SKILL.md", HEAD.format(name="a"))
    place.link(f"{SHELF}/a/other", "../../../deploy.pem")
    place.race(f"{SHELF}/a/SKILL.md", f"{SHELF}/a/other")
    for _ in range(80):
        await place.call("skill")
        await place.call("skill", name="a")
