"""The pattern stored when the user chooses "always allow": a prefix (`npm run build`) and options.

An option can completely change what a program does, and no table lists all of them. So a stored approval
covers the options that were shown, with any operands; a command with any other option needs approval again.
"""

import re
from collections.abc import Mapping

from handtools.text.shell.hazards import find_hazards
from handtools.text.shell.word_unquoting import CommandWords

_TWO = """
git npm pnpm yarn bun cargo go docker podman kubectl helm pip pip3 pipx uv poetry pdm hatch conda mamba
gem bundle composer mvn gradle dotnet swift rustup apt apt-get dnf yum pacman brew systemctl journalctl
terraform tofu pulumi ansible nix make just task tox nox pre-commit ruff mypy alembic django-admin flask
rails rake mix stack cabal zig deno svn hg jj gh glab aws gcloud az heroku fly vercel netlify wrangler
firebase redis-cli sqlite3 tmux
"""
_THREE = """
npm run, pnpm run, yarn run, bun run, docker compose, podman compose, git remote, git stash, git worktree,
git submodule, git bisect, git flow, uv pip, uv tool, cargo +nightly, kubectl config, kubectl rollout,
helm repo, go mod, go tool, gh pr, gh issue, gh repo, gh run, gh release, gh workflow, gh auth, aws s3,
aws ec2, aws iam, gcloud compute, gcloud auth, az vm, dotnet tool, rustup toolchain, conda env, nix flake,
terraform state, npm config, pip config, deno task, composer run
"""
_RUNS_ANYTHING = """
npm exec, npm x, pnpm exec, pnpm dlx, yarn dlx, yarn exec, bun x, uv run, uvx, pipx run, poetry run,
pdm run, hatch run, cargo run, go run, go generate, docker run, docker exec, podman run, podman exec,
kubectl exec, kubectl run, conda run, bundle exec, nix shell, nix run, nix develop, deno run, deno eval,
rails runner, mix run, gh api, git config, git bisect, git submodule, swift run, dotnet run,
composer exec, tmux new, sqlite3, docker compose exec, docker compose run, podman compose exec,
podman compose run
"""
_NEVER = """
python python2 python3 pypy node nodejs deno bun ruby perl php lua luajit R Rscript julia irb ghci scala
groovy java javac osascript pwsh powershell awk gawk mawk nawk sed ed ex vi vim nvim emacs nano m4 gdb
lldb npx uvx bunx pnpx bash sh dash zsh ksh fish env sudo doas su pkexec xargs parallel time timeout nice
nohup exec eval source . find fd rm rmdir unlink shred mv dd mkfs fdisk parted chmod chown chgrp kill
pkill killall truncate install ln curl wget http https nc ncat netcat socat ssh scp sftp rsync ftp telnet
crontab at mount umount reboot shutdown tee cp tar zip unzip 7z tmux screen psql mysql sqlite3 redis-cli
mongosh
"""
MAX_REMEMBERED_OPTIONS = 8
"""A command with more options is only remembered exactly as written."""
_OPTION = re.compile(r"-(?!-\Z).*|@.+|/[A-Za-z]+[:=].*|[A-Za-z_][\w.-]*[:+?!]?=(?!=).*", re.DOTALL)
"""An option (`-x`, `/p:x`), a file with options (`@file`) or a setting (`CC=x`), but not a bare `--`."""
_COUNT = re.compile(r"(-[nABCj]?)[0-9]+")
"""A number of lines, results or jobs, as in `tail -20` and `make -j8`."""
_AT_IS_NO_FILE = frozenset({"git", "npm", "pnpm", "yarn", "bun"})
"""Programs for which `@name` is a revision or a package."""


def _listed(text: str) -> list[str]:
    return [" ".join(each.split()) for each in text.split(",")]


_ARITY: Mapping[str, int] = dict.fromkeys(_TWO.split(), 2) | dict.fromkeys(_listed(_THREE), 3)
_BANNED = frozenset(_NEVER.split()) | frozenset(_listed(_RUNS_ANYTHING))


def always_allow_prefix(words: CommandWords) -> CommandWords | None:
    """Return the prefix by which similar commands are allowed.

    Returns None if only this exact command may be allowed.
    """
    name, two = words[0], " ".join(words[:2])
    length = _ARITY.get(two, _ARITY.get(name, 1))
    taken = words[:length]
    short = len(taken) < length
    odd = "/" in name or any(word.startswith("-") or "/" in word for word in taken[1:])
    if short or odd or {name, two, " ".join(taken)} & _BANNED or find_hazards(words):
        return None
    if len(remembered_options(words)) > MAX_REMEMBERED_OPTIONS:
        return None
    return taken


def remembered_options(words: CommandWords) -> tuple[str, ...]:
    """Return the distinct options and settings in the words of a command, with counts replaced by `N`."""
    found = (
        _COUNT.sub(r"\1N", word) if _COUNT.fullmatch(word) else word
        for word in words[1:]
        if _OPTION.fullmatch(word) and not (word.startswith("@") and words[0] in _AT_IS_NO_FILE)
    )
    return tuple(dict.fromkeys(found))
