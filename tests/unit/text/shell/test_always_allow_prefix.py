"""How much of a command "always" stands for."""

import pytest

from handtools.text.shell.always_allow_prefix import always_allow_prefix


@pytest.mark.parametrize(
    ("command", "beginning"),
    [
        ("git push origin main", "git push"),
        ("git status", "git status"),
        ("git remote add x y", None),
        ("git remote -v", None),
        ("npm run test -- --watch", "npm run test"),
        ("npm install left-pad", "npm install"),
        ("docker compose up -d", "docker compose up"),
        ("cargo build --release", "cargo build"),
        ("gh pr list --limit 3", "gh pr list"),
        ("make test", "make test"),
        ("pytest -x tests", "pytest"),
        ("ls -la", "ls"),
    ],
)
def test_a_beginning_is_as_long_as_a_person_would_say_it(command, beginning):
    found = always_allow_prefix(tuple(command.split()))
    assert found == (tuple(beginning.split()) if beginning else None)


@pytest.mark.parametrize(
    "command",
    [
        "./run.sh", "/usr/bin/git status", "bin/x y",
        "python -c x", "python3 a.py", "node a.js", "ruby -e x", "perl -e x", "bash -c x", "sh a.sh", "awk x",
        "env ls", "sudo ls", "xargs ls", "timeout 9 ls", "nohup ls", "find . -name x", "npx cowsay", "uvx ruff",
        "npm exec x", "uv run x", "docker run x", "docker compose exec a b", "kubectl exec a", "git config x y",
        "rm x", "mv a b", "dd if=a", "chmod +x a", "kill 1", "curl x", "ssh host", "tee a", "sed -n 1p a",
        "git", "npm", "npm run", "git -C x push", "git -c a=b push", "cargo ./x", "git push --force",
        "git push -f",
        "git log --output=x", "git push origin +main", "git reset --hard", "git branch -D x", "sort -o a b",
    ],
)  # fmt: skip
def test_nothing_lasting_is_offered_for_what_could_be_anything(command):
    assert always_allow_prefix(tuple(command.split())) is None
