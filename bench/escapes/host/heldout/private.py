"""Private files: the same secrets in places and under names that the rules do not think of."""

from collections.abc import Iterable

from bench.escapes.host.place import Place


async def _read(place: Place, paths: Iterable[str]) -> None:
    secret = place.secrets["OTHER"]
    paths = list(paths)
    for path in paths:
        place.put(path, f"password = {secret}\n")
    place.begin()
    for path in paths:
        result = await place.call("read", path=path)
        if secret in repr(result.content):
            place.tell("found", f"read: {path}")


async def below_the_name_of_an_exception(place: Place) -> None:
    """A private file lies in a folder whose name is that of an exception: `*.pub`, `.env.example`."""
    await _read(place, ("site.pub/.env", ".env.example/.env", "keys.pub/id_rsa", ".env.dist/server.key"))


async def copies_that_editors_leave(place: Place) -> None:
    """Editors and people leave copies beside a private file, with a little more in their names."""
    await _read(
        place,
        (".env~", "#.env#", "deploy.pem~", "deploy.pem.bak", ".deploy.pem.swp", ".netrc~", ".npmrc.bak", "server.key.old"),
    )  # fmt: skip


async def credentials_of_other_programs(place: Place) -> None:
    """Files in which other well-known programs keep passwords and tokens."""
    await _read(
        place,
        (
            ".docker/config.json", ".kube/config", ".config/gh/hosts.yml", ".htpasswd", ".vault-token", "terraform.tfstate",
            ".cargo/credentials.toml", ".gem/credentials", ".config/gcloud/credentials.db", "x.jks", "x.kdbx", "x.ppk",
        ),
    )  # fmt: skip


async def call_ids_that_are_paths(place: Place) -> None:
    """The caller names its calls and sessions like paths, and their long outputs are kept under these names."""
    from handtools import Call

    for name in (
        "../../../outside/mark",
        f"{place.outside}/mark",
        "..",
        "a/../../b",
        "x\0y",
        "~/.bashrc",
        "a" * 300,
    ):
        command = {
            "command": "for i in $(seq 9000); do echo line $i of a long output; done; cd src; export A=1"
        }
        await place.call(Call(tool="bash", args=command, id=name, session=name))
        await place.call(
            Call(tool="write", args={"path": "w.txt", "content": name[:9]}, id=f"{name}.w", session=name)
        )
