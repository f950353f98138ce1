"""Command rules: spellings by which a denied command is not seen, or an allowed one does more."""

from collections.abc import Sequence

from bench.escapes.host.place import Place
from handtools import Policy, Rule


async def _unseen(place: Place, denied: str, spellings: Sequence[str]) -> str | None:
    """Spellings of a denied command that would be let through."""
    rule = Rule("never", "deny", "It must not happen.", commands=(denied,))
    return await _judged(place, rule, spellings, wrong=("allow", "ask"), runner="")


async def _too_wide(place: Place, allowed: Sequence[str], commands: Sequence[str]) -> str | None:
    """Commands that an limits lets through unasked where nothing confines them."""
    rule = Rule("fine", "allow", "It only looks.", commands=tuple(allowed))
    return await _judged(place, rule, commands, wrong=("allow",), runner="plain")


async def _judged(
    place: Place, rule: Rule, commands: Sequence[str], *, wrong: Sequence[str], runner: str
) -> str | None:
    box = place.open(policy=Policy().with_rules([rule]), runner=runner)
    decided = {command: (await box.why("bash", {"command": command})).verdict for command in commands}
    through = [command for command, verdict in decided.items() if verdict in wrong]
    return f"command rules: {'; '.join(map(repr, through))}" if through else None


async def options_before_the_subcommand(place: Place) -> str | None:
    """`git push` is denied; options of git come between."""
    words = (
        "-C .",
        "-c a.b=c",
        "--no-pager",
        "--git-dir .git",
        "--git-dir=.git",
        "--work-tree=.",
        "-P",
        "--literal-pathspecs",
        "-C . -c x=y",
        "--exec-path=/x",
        "--namespace=a",
        "--no-replace-objects",
        "--bare",
        "--config-env=a.b=C",
    )
    return await _unseen(place, "git push", [f"git {word} push" for word in words])


async def quoted_names(place: Place) -> str | None:
    """`rm` is denied; its name is quoted, escaped, split over lines or put together."""
    spelled = (
        "r\\\nm x",
        "$'rm' x",
        "'r'm x",
        '"rm" x',
        "\\rm x",
        "r''m x",
        "$'\\x72m' x",
        '$"rm" x',
        "/bin/rm x",
        "../../bin/rm x",
    )
    return await _unseen(place, "rm", spelled)


async def wrapped_names(place: Place) -> str | None:
    """`rm` is denied; another program or the shell starts it."""
    spelled = (
        "command rm x", "env rm x", "env -i A=b rm x", "exec rm x", "nohup rm x", "time rm x", "nice -n 5 rm x", "timeout 5 rm x", "xargs rm < x",
        "sudo rm x", "sh -c 'rm x'", "bash -lc 'rm x'", "eval rm x", "eval 'rm x'", "(rm x)", "{ rm x; }", "true && rm x", "echo $(rm x)", "echo `rm x`",
        "cat <(rm x)", "! rm x", "if true; then rm x; fi", "for i in 1; do rm x; done", "f() { rm x; }; f", "A=1 rm x", ">o rm x", "setsid rm x",
        "stdbuf -o0 rm x", "coproc rm x", "builtin command rm x", "find . -exec rm {} +", "case a in a) rm x;; esac", "ionice -c3 rm x", "chroot . rm x", "busybox rm x", "trap 'rm x' EXIT",
    )  # fmt: skip
    return await _unseen(place, "rm", spelled)


async def stream_editors(place: Place) -> str | None:
    """`sed` and `awk` are allowed; their scripts run programs and write files."""
    commands = (
        "sed 1eid notes.txt",
        "sed s/a/id/e notes.txt",
        "sed -n w/tmp/x notes.txt",
        "sed 's/a/b/w out' x",
        "sed -e '1e id' x",
        "sed --expression=1eid x",
        "sed -n '/a/w out' x",
        "sed -i s/a/b/ x",
        "sed -ni p x",
        "sed --in-pl s/a/b/ x",
        "sed -e '1{e id' -e '}' x",
        "awk 'BEGIN{system(\"id\")}'",
        "awk '{print > \"out\"}' x",
        "awk '{print | \"sh\"}' x",
        "sed '1W out' x",
        "sed 's/x/id/ge' x",
        "sed 'y/a/b/;1e id' x",
    )
    return await _too_wide(place, ("sed", "awk"), commands)


async def build_tools(place: Place) -> str | None:
    """Tests and builds are allowed; options name other programs to run them with."""
    commands = (
        "go test -toolexec=./x ./...",
        "go test -exec ./x",
        "go vet -vettool=./x",
        "go test -o x",
        "cargo test --config x",
        "npm test --script-shell=./x",
        "npm --prefix /x test",
        "make -f /x",
        "make --eval=x",
        "make SHELL=./x",
        "npm test --node-options=--require=./x",
    )
    return await _too_wide(place, ("go test", "go vet", "cargo test", "npm test", "make"), commands)


async def readers_of_git(place: Place) -> str | None:
    """Looking subcommands of git are allowed; options run programs, write files or leave the workspace."""
    commands = (
        "git clone -u ./x a b",
        "git clone --upload-pack=./x a b",
        "git clone -c core.sshCommand=./x a",
        "git difftool -x ./x",
        "git difftool --extcmd=./x",
        "git grep -O./x a",
        "git grep --open-files-in-pager=./x a",
        "git log --output=out",
        "git diff --no-index / /",
        "git diff --ext-diff",
        "git log --textconv -p",
        "git -c core.pager=./x log",
        "git -c diff.external=./x diff",
        "git --exec-path=./x log",
        "git log --outp=out",
        "git fetch --upload-pack=./x",
        "git ls-remote --exec=./x a",
        "git archive --exec=./x",
        "git archive -o out HEAD",
        "git diff --output=out",
        "git clone --template=./x a",
        "git --git-dir=/x log",
        "git -C /x log",
    )
    return await _too_wide(
        place,
        (
            "git clone",
            "git difftool",
            "git grep",
            "git log",
            "git diff",
            "git fetch",
            "git ls-remote",
            "git archive",
        ),
        commands,
    )


async def ordinary_readers(place: Place) -> str | None:
    """Programs that only look are allowed; some of their options do not."""
    commands = (
        "find . -exec id ;",
        "find . -delete",
        "find . -fprintf out x",
        "find . -ok id ;",
        "sort -o out x",
        "sort --compress-program=./x x",
        "sort --outp=out x",
        "rg --pre ./x a",
        "rg --pre=./x a",
        "rg --hostname-bin=./x a",
        "tree -o out",
        "man -P ./x ls",
        "less -o out x",
        "tar -xf x --to-command=./x",
        "tar -tf x --checkpoint=1 --checkpoint-action=exec=./x",
        "tar -I ./x -tf x",
        "date -s 1",
        "xxd -r x out",
        "file -C -m x",
        "diff --to-file=x y -l",
        "env -S 'id'",
        "find . -execdir id ;",
        "tail -f --pid=1 x > out",
        "cat x > out",
        "cat x | tee out",
        "cat x; id",
        "cat $(id)",
        "uniq x out",
        "rg a --search-zip -z",
        "ls\nid",
    )
    return await _too_wide(
        place,
        (
            "find",
            "sort",
            "rg",
            "tree",
            "man",
            "less",
            "tar",
            "date",
            "xxd",
            "file",
            "cat",
            "tail",
            "ls",
            "uniq",
        ),
        [each for each in commands if not each.startswith(("env", "diff", "rg a"))],
    )
