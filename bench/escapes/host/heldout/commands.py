"""Command rules: allowed programs whose options or tasks do more than their names say."""

from collections.abc import Sequence

from bench.escapes.host.place import Place
from handtools import Policy, Rule


async def _too_wide(place: Place, allowed: Sequence[str], commands: Sequence[str]) -> str | None:
    rule = Rule("fine", "allow", "It is harmless.", commands=tuple(allowed))
    box = place.open(policy=Policy().with_rules([rule]), runner="plain")
    decided = {command: (await box.why("bash", {"command": command})).verdict for command in commands}
    through = [command for command, verdict in decided.items() if verdict == "allow"]
    return f"command rules: {'; '.join(map(repr, through))}" if through else None


async def inline_code_for_checkers(place: Place) -> str | None:
    """Checkers are allowed; options hand them code, or load a module of any name."""
    return await _too_wide(
        place,
        ("pylint", "eslint", "pytest", "mocha", "jest", "prettier", "rspec", "flake8", "tsc"),
        (
            "pylint --init-hook='import os; os.system(\"id\")' a.py", "pylint --load-plugins=evil a.py", "eslint --rulesdir ./evil a.js",
            "eslint --resolve-plugins-relative-to /tmp a.js", "pytest -p evil", "mocha -r ./evil.js", "mocha --require ./evil.js",
            "jest --globalSetup ./evil.js", "prettier --plugin ./evil.js a.js", "rspec -r ./evil.rb",
        ),
    )  # fmt: skip


async def other_files_for_builds(place: Place) -> str | None:
    """Builds are allowed; options name another file to build by, or a program to run."""
    return await _too_wide(
        place,
        ("cmake", "ninja", "gradle", "bazel build", "just", "tox", "mvn test", "meson", "rake", "task"),
        (
            "cmake -P evil.cmake", "cmake -E env sh evil.sh", "ninja -f evil.ninja", "gradle -I evil.gradle build", "just -f /tmp/evil build",
            "just --shell ./evil build", "bazel build --workspace_status_command=./evil //x", "tox -c evil.ini", "mvn test -f /tmp/evil.xml",
            "rake -f evil.rb", "task -t /tmp/evil.yml build", "gradle --init-script=evil.gradle build",
        ),
    )  # fmt: skip


async def tasks_of_git_that_only_look(place: Place) -> str | None:
    """Looking subcommands of git are allowed; a further word makes them throw work away, or run filters."""
    return await _too_wide(
        place,
        ("git reflog", "git remote", "git cat-file", "git notes", "git symbolic-ref", "git bundle", "git fsck"),
        (
            "git reflog expire --expire=now --all", "git reflog delete HEAD@{1}", "git remote rm origin", "git remote rename a b",
            "git cat-file --filters HEAD:a", "git notes remove HEAD", "git symbolic-ref HEAD refs/heads/x", "git bundle create x HEAD",
        ),
    )  # fmt: skip


async def variables_before_an_allowed_command(place: Place) -> str | None:
    """Variables before an allowed command change what it loads, pages with or connects through."""
    return await _too_wide(
        place,
        ("less", "git log", "git fetch", "ls", "pytest", "man"),
        (
            "LESSOPEN='|id' less a", "GIT_PAGER=id git log", "GIT_SSH_COMMAND=id git fetch", "LD_PRELOAD=./x.so ls",
            "PYTEST_ADDOPTS='-p evil' pytest", "MANPAGER=id man ls", "BASH_ENV=evil ls", "PATH=. ls", "export PATH=.; ls",
            "declare -x LD_AUDIT=x; ls", "read PATH <<< .; ls", "printf -v PATH .; ls",
        ),
    )  # fmt: skip
