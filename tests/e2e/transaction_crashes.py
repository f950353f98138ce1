"""A process that runs one command and dies at a chosen moment; started by test_transaction."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import anyio

from handtools import Call, Policy, Toolbox
from handtools.core.approval import Reply
from handtools.host.files.backups import FolderBackups
from handtools.host.files.local_files import LocalFiles
from handtools.toolbox import CODING, local_workspace

SCRIPT = (
    "echo new > a; rm -rf d; mkdir n; echo x > n/y; ln -s a l; chmod 700 e; "
    "mkdir big; for i in $(seq 300); do echo $i > big/$i; done"
)


class DyingVault(FolderBackups):
    """Ends the process at the n-th move, before or after it."""

    def __init__(self, folder: Path, at: int, *, after: bool) -> None:
        super().__init__(folder)
        self.left, self.after = at, after

    def _count(self, *, after: bool) -> None:
        if self.after == after:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def take_out(self, ref, folder, name):
        self._count(after=False)
        super().take_out(ref, folder, name)
        self._count(after=True)

    def put_in(self, ref, folder, name):
        self._count(after=False)
        super().put_in(ref, folder, name)
        self._count(after=True)


def box(base: Path, backups: FolderBackups | None = None, policy: Policy | None = None) -> Toolbox:
    workspace = local_workspace(base / "work", state=base / "state")
    if backups is not None:
        workspace = replace(workspace, files=LocalFiles(base / "work", backups=backups))
    return Toolbox(CODING, workspace=workspace, policy=policy or Policy(unattended="allow"))


async def main(base: Path, moment: str, number: int) -> None:
    backups = None
    if moment in {"before", "after"}:
        backups = DyingVault(base / "state" / "vault", number, after=moment == "after")
    made = box(base, backups, Policy() if moment in {"holding", "yes"} else None)
    lasting = f"echo begun >> a; echo ready; exec sleep {number}"
    script = lasting if moment in {"running", "job"} else SCRIPT
    made.listen(lambda event: print(type(event).__name__, flush=True))
    args = {"command": script, "background": moment == "job", "review": moment == "holding"}
    if moment == "settled":
        await made.call("think", {"thought": "the first call settles what was left"})
        print("waiting", *[approval.call_id for approval in await made.waiting()], flush=True)
    elif moment == "yes":
        print((await made.resume("the-call", Reply(allow=True))).status, flush=True)
    elif moment == "undone":
        await made.call("undo", {"scope": "call", "name": "the-call"})
    else:
        result = await made.call(Call(id="the-call", tool="bash", args=args))
        print("survived" if moment in {"before", "after"} else result.status, flush=True)
        if moment in {"job", "holding"}:
            await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
