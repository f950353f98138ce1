"""Walls that a command met, by what programs print."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.host.commands.restriction_notes import (
    MAX_WALLS,
    SUCCESS_LINES_CHECKED_FOR_WALLS,
    WALLS,
    CommandConfinement,
    wall_notes,
)

CONFINED = CommandConfinement(confined=True, network="off", terminal=False)
MESSAGES = {
    "no hard links to older files": "fatal: hardlink different from source at '/src/.git/objects/ab'",
    "no Docker": "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?",
    "no sudo": "bash: line 1: sudo: command not found",
    "no system packages": "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)",
    "no network": "curl: (6) Could not resolve host: example.com",
    "not through the proxy": "ssh: Could not resolve hostname example.com: Temporary failure in name resolution",
    "unknown certificate authority": (
        "curl: (60) SSL certificate problem: unable to get local issuer certificate"
    ),
    "no host key or account": "fatal: could not read Username for 'https://example.com': No such device",
    "private file": "cat: .env: Permission denied",
    "repository elsewhere": (
        "fatal: Unable to create '/src/app/.git/worktrees/fix/index.lock': Read-only file system"
    ),
    "read-only": "touch: cannot touch '/usr/x': Read-only file system",
    "no space": "dd: error writing '/tmp/big': No space left on device",
    "too many processes": "bash: fork: retry: Resource temporarily unavailable",
    "out of memory": "MemoryError",
    "too many open files": "OSError: [Errno 24] Too many open files: 'a'",
    "no services": "System has not been booted with systemd as init system (PID 1). Can't operate.",
    "no terminal": "open terminal failed: not a terminal",
    "not on PATH": "bash: line 1: frobnicate: command not found",
}
"""A message of a real program for each wall; the programs themselves run in tests/e2e/test_walls.py."""


def around(wall) -> CommandConfinement:
    network = "listed" if wall.condition == "listed hosts" else "off"
    return CommandConfinement(
        confined=True, network=network, terminal=False, is_private=lambda path: path == ".env"
    )


@pytest.mark.parametrize("wall", WALLS, ids=lambda wall: wall.name)
def test_every_wall_is_told_by_its_message(wall):
    notes = wall_notes(f"working\n{MESSAGES[wall.name]}\n", failed=True, confinement=around(wall))
    told = wall.sentence.partition("{what}")
    assert notes
    assert notes[0].startswith(told[0])
    assert notes[0].endswith(told[2])
    assert "{what}" not in notes[0]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("curl: (6) Could not resolve host: example.com", 'hosts=["example.com"]'),
        ("wget: unable to resolve host address ‘example.com’", 'hosts=["example.com"]'),
        (
            "fatal: unable to access 'https://example.com/a.git/': Could not resolve host: example.com",
            "example.com",
        ),
        ("  [cause]: Error: getaddrinfo EAI_AGAIN example.com", "example.com"),
        ("  [6] Could not resolve hostname (Could not resolve host: index.example.io)", "index.example.io"),
        (
            'psql: error: could not translate host name "db.example.com" to address: Temporary failure',
            "db.example.com",
        ),
        (
            "ERROR: Could not find a version that satisfies the requirement six (from versions: none)",
            'hosts=["HOST"]',
        ),
        (
            "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
            'hosts=["HOST"]',
        ),
        (
            'go: example.com/x@v1: Get "https://example.com/x": dial tcp: lookup example.com on 10.0.0.1:53',
            "example.com",
        ),
        ("bash: line 1: /etc/x: Read-only file system", "`/etc/x`"),
        ("OSError: [Errno 30] Read-only file system: '/usr/x'", "`/usr/x`"),
        ("mkdir: cannot create directory ‘/opt/y’: Read-only file system", "`/opt/y`"),
        ("/usr/bin/env: ‘node18’: No such file or directory", "`node18`"),
    ],
)
def test_what_the_message_names_is_in_the_sentence(line, named):
    [note] = wall_notes(line, failed=True, confinement=CONFINED)
    assert named in note


def test_a_message_is_no_wall_where_there_is_none():
    free = CommandConfinement(confined=False, network="on", terminal=True)
    [always] = [wall for wall in WALLS if wall.condition == "always"]
    for message in MESSAGES.values():
        notes = wall_notes(message, failed=True, confinement=free)
        assert all(always.sentence.partition("{what}")[2] in note for note in notes), message


def test_a_missing_file_is_private_only_if_it_is():
    assert wall_notes("cat: .env: Permission denied", failed=True, confinement=CONFINED) == ()


def test_a_message_that_a_search_found_in_a_file_is_no_wall():
    found = "docs/a.md:12:curl: (6) Could not resolve host: example.com\n12:MemoryError\n"
    assert wall_notes(found, failed=True, confinement=CONFINED) == ()


def test_of_a_script_that_ended_well_only_the_last_lines_count():
    wall, rest = f"{MESSAGES['no network']}\n", "fine\n" * SUCCESS_LINES_CHECKED_FOR_WALLS
    assert wall_notes(wall + rest, failed=True, confinement=CONFINED)
    assert wall_notes(rest + wall, failed=False, confinement=CONFINED)
    assert not wall_notes(wall + rest, failed=False, confinement=CONFINED)


lines = st.sampled_from([*MESSAGES.values(), "fine", ""]) | st.text(max_size=200)


@given(st.lists(lines, max_size=60), st.booleans(), st.booleans(), st.sampled_from(["off", "listed", "on"]))
def test_few_sentences_come_of_any_output(output, failed, confined, network):
    place = CommandConfinement(confined=confined, network=network, terminal=False)
    notes = wall_notes("\n".join(output), failed=failed, confinement=place)
    assert len(notes) <= MAX_WALLS
    assert len(set(notes)) == len(notes)
    assert all(note.endswith(".") and "\n" not in note for note in notes)
