"""Words that make a harmless-looking command write, delete or run something."""

import shlex

import pytest

from handtools.text.shelling.hazards import hazards


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("find . -delete", "-delete"),
        ("find . -name x -exec rm {} ;", "-exec"),
        ("find . -fprintf out %p", "-fprintf"),
        ("fd x -X rm", "-X"),
        ("git log --output=x", "--output=x"),
        ("git log --outp x", "--outp"),
        ("git diff --no-index /etc/passwd a", "--no-index"),
        ("git -c core.pager=x log", "-c"),
        ("git grep -Oless x", "-Oless"),
        ("git push -f", "-f"),
        ("git push origin +main", "+main"),
        ("git push origin :old", ":old"),
        ("git clean -fdx", "-fdx"),
        ("git checkout -- a", "--"),
        ("git checkout .", "."),
        ("git clone ext::x y", "ext::x"),
        ("git bisect run x", "run"),
        ("sort -o a b", "-o"),
        ("sort -ro a b", "-ro"),
        ("sort -oa b", "-oa"),
        ("sort --out=a b", "--out=a"),
        ("less +!id a", "+!id"),
        ("man -P id ls", "-P"),
        ("rg --pre id x", "--pre"),
        ("sed -i s/a/b/ x", "-i"),
        ("sed -n s/a/b/w\\ out x", "s/a/b/w out"),
        ("sed 1e x", "1e"),
        ("sed s/a/b/e x", "s/a/b/e"),
        ("awk BEGIN{system(1)}", "BEGIN{system(1)}"),
        ("tar --to-command=x -xf a", "--to-command=x"),
        ("tar --checkpoint-action=exec=x -cf a b", "--checkpoint-action=exec=x"),
        ("curl -o a x", "-o"),
        ("curl -so a x", "-so"),
        ("wget -O a x", "-O"),
        ("make SHELL=x test", "SHELL=x"),
        ("go test -exec x ./...", "-exec"),
        ("uniq a b", "b"),
        ("/usr/bin/find . -delete", "-delete"),
        ("rsync -e x a b", "-e"),
        ("date -s x", "-s"),
    ],
)
def test_a_word_with_consequences_is_named(command, word):
    assert word in [hazard.word for hazard in hazards(tuple(shlex.split(command)))]


@pytest.mark.parametrize(
    "command",
    [
        "git log --oneline -5", "git status -s", "git diff --cached", "git commit -am done",
        "git push origin main",
        "git checkout main", "git add -A", "git switch -c new", "find . -name x -type f", "find . -newer a",
        "sort -rn a",
        "sort -k2,2 a", "less a.txt", "rg -n x src", "sed -n 1,5p a.py", "sed s/a/b/g a.py", "awk {print} a",
        "tar tf a.tar",
        "curl -sSL https://example.com", "make test", "go test ./...", "uniq -c a", "ls -la", "cat a",
        "grep -rn x .",
    ],
)  # fmt: skip
def test_what_only_looks_has_none(command):
    assert hazards(tuple(shlex.split(command))) == ()
