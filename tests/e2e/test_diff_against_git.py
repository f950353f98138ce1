"""Our diffs against git's: as small, and accepted by `git apply` and `patch`."""

import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which

import pytest

from handtools.text.diffs import unified_diff

pytestmark = pytest.mark.skipif(not which("git"), reason="needs git")
needs_patch = pytest.mark.skipif(not which("patch"), reason="needs patch")

Pair = tuple[str, str]


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def random_text(chance: random.Random, alphabet: int, most: int) -> str:
    ends = chance.choice([["\n"], ["\n"], ["\r\n"], ["\n", "\r\n", "\r"]])
    rows = [chance.choice("abcdefgh \t"[:alphabet]) + chance.choice(ends) for _ in range(most)]
    text = "".join(rows)
    return text if chance.random() < 0.7 else text.rstrip("\r\n")


def edited(chance: random.Random, text: str) -> str:
    rows = text.splitlines(keepends=True)
    for _ in range(chance.randrange(6)):
        place = chance.randrange(len(rows) + 1)
        rows[place : place + chance.randrange(3)] = chance.choices(
            ["a\n", "b\n", "x\n", "\n"], k=chance.randrange(3)
        )
    return "".join(rows)


def pairs(count: int) -> Iterator[Pair]:
    chance = random.Random(20250101)
    for _ in range(count):
        alphabet, most = chance.choice([1, 2, 3, 6, 10]), chance.randrange(60)
        before = random_text(chance, alphabet, most)
        again = random_text(chance, alphabet, chance.randrange(60))
        yield before, chance.choice([again, edited(chance, before)])


def test_random_texts_differ_in_no_more_lines_than_git_finds_with_minimal(tmp_path: Path):
    ours = {}
    for number, (before, after) in enumerate(pairs(600)):
        write(tmp_path / "a" / str(number), before)
        write(tmp_path / "b" / str(number), after)
        if before != after:
            ours[str(number)] = unified_diff.count_changed_lines(before, after)
    stats = run(
        tmp_path, "git", "diff", "--no-index", "--minimal", "--numstat", "--no-renames", "-z", "a", "b"
    )
    fields = stats.stdout.split("\0")
    git = {}
    for counts, _, name in zip(fields[0::3], fields[1::3], fields[2::3], strict=False):
        added, removed, _ = counts.split("\t")
        git[name.removeprefix("b/")] = (int(added), int(removed))
    assert git.keys() == ours.keys()
    # Even with `--minimal` git sometimes keeps a line less than it could.
    assert [name for name in ours if ours[name] > git[name]] == []
    assert sum(ours[name] == git[name] for name in ours) > 0.9 * len(ours)


def changes() -> dict[str, tuple[str | None, str | None]]:
    named: dict[str, tuple[str | None, str | None]] = {
        "new.txt": (None, "a\nb\n"),
        "gone.txt": ("a\nb\n", None),
        "new without end": (None, "a"),
        "with space/in it.txt": ("a\nb\n", "a\nc\n"),
        "ünï/cødé.txt": ("a\n", "b\n"),
        "emptied.txt": ("a\nb", ""),
        "filled.txt": ("", "a\nb"),
        "signs.txt": ("--- x\n+++ y\n@@ -1 +1 @@\n\\ z\n", "++ x\n-- y\n@@ -1 +1 @@\n"),
        "returns.txt": ("a\rb\rc\r", "a\rB\rc\r"),
        "separators.txt": ("a\u2028b\fc\n", "a\u2028B\fc\n"),
    }
    return named | {f"random/{number}": pair for number, pair in enumerate(pairs(300))}


def lay_out(folder: Path) -> tuple[dict[str, tuple[str | None, str | None]], str]:
    """Write the old files and give the one patch for all of them."""
    cases = changes()
    for name, (before, _) in cases.items():
        if before is not None:
            write(folder / name, before)
    return cases, "".join(unified_diff.unified_diff(name, *texts) for name, texts in cases.items())


def assert_patched(folder: Path, cases: dict[str, tuple[str | None, str | None]]) -> None:
    for name, (_, after) in cases.items():
        found = (folder / name).read_bytes() if (folder / name).exists() else None
        assert found == (None if after is None else after.encode()), name


def test_git_apply_turns_the_old_files_into_the_new(tmp_path: Path):
    cases, patch = lay_out(tmp_path)
    write(tmp_path / "all.patch", patch)
    applied = run(tmp_path, "git", "apply", "--whitespace=nowarn", "all.patch")
    assert applied.returncode == 0, applied.stderr
    assert_patched(tmp_path, cases)


@needs_patch
def test_patch_turns_the_old_files_into_the_new(tmp_path: Path):
    cases, patch = lay_out(tmp_path)
    write(tmp_path / "all.patch", patch)
    applied = run(tmp_path, "patch", "-p1", "--binary", "-i", "all.patch")
    assert applied.returncode == 0, applied.stdout
    cases = {name: texts for name, texts in cases.items() if name != "emptied.txt"}
    assert_patched(tmp_path, cases)


def test_git_applies_a_diff_without_context(tmp_path: Path):
    before, after = "a\nb\nc\nd\n", "a\nB\nc\nx\nd\n"
    write(tmp_path / "f", before)
    write(tmp_path / "f.patch", unified_diff.unified_diff("f", before, after, context=0))
    applied = run(tmp_path, "git", "apply", "--unidiff-zero", "f.patch")
    assert applied.returncode == 0, applied.stderr
    assert (tmp_path / "f").read_text() == after


@pytest.mark.parametrize("name", ["tab\there", 'quo"te', "back\\slash", "line\nfeed"])
def test_git_understands_how_odd_names_are_written(tmp_path: Path, name: str):
    write(tmp_path / name, "a\n")
    write(tmp_path / "odd.patch", unified_diff.unified_diff(name, "a\n", "b\n"))
    applied = run(tmp_path, "git", "apply", "odd.patch")
    assert applied.returncode == 0, applied.stderr
    assert (tmp_path / name).read_text() == "b\n"


@pytest.mark.parametrize("after", ["a\nb\n", "a\nc\n"])
def test_git_applies_a_move_with_and_without_changes(tmp_path: Path, after: str):
    write(tmp_path / "old name", "a\nb\n")
    write(tmp_path / "p", unified_diff.unified_diff("new", "a\nb\n", after, before_path="old name"))
    applied = run(tmp_path, "git", "apply", "p")
    assert applied.returncode == 0, applied.stderr
    assert not (tmp_path / "old name").exists()
    assert (tmp_path / "new").read_text() == after


def test_git_creates_and_deletes_empty_files(tmp_path: Path):
    write(tmp_path / "gone", "")
    patch = unified_diff.unified_diff("new", None, "") + unified_diff.unified_diff("gone", "", None)
    write(tmp_path / "p", patch)
    applied = run(tmp_path, "git", "apply", "p")
    assert applied.returncode == 0, applied.stderr
    assert (tmp_path / "new").read_bytes() == b""
    assert not (tmp_path / "gone").exists()


def near_identical() -> Pair:
    chance = random.Random(7)
    rows = [chance.choice(["    }\n", "    return x\n", "\n", "    {\n"]) for _ in range(20_000)]
    after = rows.copy()
    for place in sorted(chance.sample(range(20_000), 300), reverse=True):
        after[place : place + 1] = chance.choices(["    }\n", "new\n"], k=chance.randrange(3))
    return "".join(rows), "".join(after)


def repetitive() -> Pair:
    before = "".join(f"row {number % 3}\n" for number in range(8_000))
    after = "".join(f"row {number % 5}\n" for number in range(8_000))
    return before, after


def unrelated() -> Pair:
    chance = random.Random(7)
    before = "".join(f"{chance.randrange(500)}\n" for _ in range(50_000))
    after = "".join(f"{chance.randrange(500)}\n" for _ in range(50_000))
    return before, after


@pytest.mark.parametrize(("make", "limit"), [(near_identical, 4), (repetitive, 2)])
def test_large_repetitive_texts_are_diffed_as_minimally_as_by_git_and_soon(
    tmp_path: Path, make: Callable[[], Pair], limit: float
):
    before, after = make()
    write(tmp_path / "a", before)
    write(tmp_path / "b", after)
    start = time.process_time()
    unified_diff.unified_diff("x", before, after)
    elapsed = time.process_time() - start
    stats = run(tmp_path, "git", "diff", "--no-index", "--minimal", "--numstat", "a", "b")
    added, removed, _ = stats.stdout.split("\t")
    assert unified_diff.count_changed_lines(before, after) <= (int(added), int(removed))
    assert elapsed < limit


def test_unrelated_large_texts_are_diffed_soon():
    before, after = unrelated()
    start = time.process_time()
    unified_diff.unified_diff("x", before, after)
    assert time.process_time() - start < 12
