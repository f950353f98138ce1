"""How much of a command "always" stands for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.runtime.approval.gate import always_allow_prefix, remembered_options


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


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("pytest -q tests/a.py::test[x=1] -k name --maxfail=1 -q", "-q -k --maxfail=1"),
        ("git diff -- a", ""),
        ("git log @{u}.. -5 HEAD:a=b", "-N"),
        ("tail -n20 -f a", "-nN -f"),
        ("make -j8 -O2 CC=x X:=y a", "-jN -O2 CC=x X:=y"),
        ("npm install @a/b", ""),
        ("tsc @args -", "@args -"),
        ("dotnet test /p:A=b /tmp/x.csproj", "/p:A=b"),
        ("pip install a==1 https://x?a=b ./c", ""),
    ],
)
def test_options_and_settings_are_told_from_operands(command, options):
    assert remembered_options(tuple(command.split())) == tuple(options.split())


@given(st.lists(st.text(st.sampled_from("-a=@/:N1 "), min_size=1), max_size=6))
def test_every_word_that_begins_with_a_dash_is_an_option(words):
    found = remembered_options(("ls", *words))
    dashed = [word for word in words if word.startswith("-") and word != "--"]
    assert len([word for word in found if word.startswith("-")]) <= len(dashed)
    assert all(word in found or any(char.isdigit() for char in word) for word in dashed)
