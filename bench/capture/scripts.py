"""Random scripts: what agents really run, and what they should rather not."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from shlex import quote

Op = Callable[["Scene"], str]


class Scene:
    """What there is to work on."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.chance = chance
        self.files: list[str] = []
        self.folders: list[str] = ["."]
        for above, folders, files in os.walk(root):
            folders[:] = [name for name in folders if name != ".git"]
            inside = os.path.relpath(above, root)
            self.files += [os.path.join(inside, name) for name in files if _writable(name)]
            self.folders += [
                os.path.join(inside, name)
                for name in folders
                if not os.path.islink(os.path.join(above, name))
            ]

    def file(self) -> str:
        return quote(self.chance.choice(self.files) if self.files else "none")

    def folder(self) -> str:
        return quote(self.chance.choice(self.folders))

    def inner(self) -> str:
        return quote(self.chance.choice(self.folders[1:] or ["none"]))

    def new(self) -> str:
        odd = self.chance.choice(
            ["n", "with space", "ünïcode", "-dash", "new\nline", "semi;colon", ".hidden"]
        )
        return quote(os.path.join(self.chance.choice(self.folders), f"{odd}{self.chance.randrange(1000)}"))


GIT = "git -c user.name=n -c user.email=e@e -c commit.gpgsign=false"
OPS: list[Op] = [
    lambda s: f"echo {s.chance.random()} > {s.new()}",
    lambda s: f"echo more >> {s.file()}",
    lambda s: f": > {s.file()}",
    lambda s: f"rm -f -- {s.file()}",
    lambda s: f"rm -rf -- {s.inner()}",
    lambda s: f"rm -rf -- {s.inner()}/* 2>/dev/null",
    lambda s: f"mkdir -p {s.new()}/a/b && touch {s.folder()}/touched",
    lambda s: f"mv -- {s.file()} {s.new()}",
    lambda s: f"mv -- {s.inner()} {s.new()}",
    lambda s: f"cp -r -- {s.inner()} {s.new()}",
    lambda s: f"ln -s -- {s.file()} {s.new()}",
    lambda s: f"ln -- {s.file()} {s.new()}",
    lambda s: f"chmod {s.chance.choice(['600', '755', '444', '000', 'u+x'])} {s.file()}",
    lambda s: f"chmod {s.chance.choice(['700', '555', '755'])} {s.inner()}",
    lambda s: f"truncate -s {s.chance.choice([0, 7, 100_000, 5_000_000])} {s.file()}",
    lambda s: f"sed -i s/line/LINE/ {s.file()}",
    lambda s: f"touch -d 2001-01-01 {s.file()}",
    lambda s: f"head -c {s.chance.choice([1, 70_000, 400_000])} /dev/urandom > {s.new()}",
    lambda s: f'rm -rf {s.inner()}x; f={s.file()}; rm -f -- "$f"; mkdir -- "$f"; echo in > "$f/in"',
    lambda s: f'd={s.inner()}; rm -rf -- "$d"; echo now a file > "$d"',
    lambda s: f'd={s.inner()}; rm -rf -- "$d"; mkdir -- "$d"; echo anew > "$d/anew"',
    lambda s: f'd={s.inner()}; rm -rf -- "$d"; ln -s / "$d"',
    lambda _: "find . -path ./.git -prune -o -type f -name 'g*' -print0 | xargs -0 rm -f",
    lambda s: f'd={s.new()}; mkdir -p "$d"; for i in $(seq 300); do echo $i > "$d/$i"; done',
    lambda s: (
        f'd={s.inner()}; rm -rf -- "$d"; mkdir -p "$d/m"; for i in $(seq 280); do echo $i > "$d/m/$i"; done'
    ),
    lambda s: f'd={s.new()}; mkdir -p "$d/ro"; echo x > "$d/ro/f"; chmod 555 "$d/ro"',
    lambda s: f"tar cf {s.new()}.tar --exclude .git src 2>/dev/null",
    lambda s: f"mkfifo {s.new()}",
    lambda s: f"echo odd > {s.folder()}/$(printf 'no\\377utf8')",
    lambda s: (
        f'd={s.new()}; mkdir "$d"; printf \'int main(void){{return 0;}}\' > "$d/m.c"; '
        'printf \'m: m.o\\n\\tcc -o m m.o\\n\' > "$d/Makefile"; make -C "$d" -s'
    ),
    lambda s: f'd={s.new()}; mkdir "$d"; echo \'x = 1\' > "$d/mod.py"; python3 -m compileall -q "$d"',
    lambda s: f"{GIT} add -A; {GIT} commit -qm {s.chance.randrange(1000)}",
    lambda s: f"{GIT} checkout -q -b b{s.chance.randrange(10_000)}",
    lambda _: f"{GIT} checkout -q main",
    lambda _: f"{GIT} stash -q -u; {GIT} stash pop -q",
    lambda _: f"{GIT} reset -q --hard HEAD~0; {GIT} clean -qfd",
    lambda _: f"{GIT} rm -rq --cached . ; {GIT} add -A",
]


def _writable(name: str) -> bool:
    """Whether a name can be part of a script."""
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def script(root: Path, chance: random.Random) -> str:
    """A few operations on what is there now; some of them fail, as in life."""
    scene = Scene(root, chance)
    return "\n".join(chance.choice(OPS)(scene) for _ in range(chance.randrange(1, 7)))
