"""The profile for macOS allows what bubblewrap's mounts allow; what macOS makes of it, nobody of us has seen."""

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.core.errors import HostError
from handtools.host.sandbox.launch import Launch
from handtools.host.sandbox.runners import bubblewrap_args, runner_selection
from handtools.host.sandbox.runners.bubblewrap_args import MaskedPaths
from handtools.host.sandbox.runners.seatbelt import PathGrant, SeatbeltRunner, seatbelt_profile
from handtools.text.search.glob import PathGlobs

READ, WRITE, EXECUTE = "file-read-data", "file-write-data", "process-exec"


def parsed(text):
    """The rules of a profile: decision, operations, and pairs of a kind of match and a path."""
    tokens = re.findall(r'#?"(?:[^"\\]|\\.)*"|[()]|[^\s()"]+', text)
    stack = [[]]
    for token in tokens:
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(re.sub(r"\\(.)", r"\1", token[1:-1]) if token.startswith('"') else token)
    assert len(stack) == 1, "unbalanced"
    return [
        (
            rule[0],
            [each for each in rule[1:] if isinstance(each, str)],
            [f for f in rule[1:] if f[0] in MATCHES],
        )
        for rule in stack[0]
        if rule[0] in {"allow", "deny"}
        and not any(isinstance(each, list) and each[0] not in MATCHES for each in rule[1:])
    ]


MATCHES = {"subpath", "literal"}


def covers(operation, wanted):
    return operation in {wanted, "default"} or (
        operation.endswith("*") and wanted.startswith(operation[:-1])
    )


def matching(rules, operation, path):
    """The decisions that are about an operation at a path, with how deep their path is; in order."""
    for decision, operations, filters in rules:
        if any(covers(each, operation) for each in operations):
            if not filters:
                yield decision, 0
            for kind, place in filters:
                if path == place or (kind == "subpath" and path.startswith(place.rstrip("/") + "/")):
                    yield decision, len(place)


def allowed(rules, operation, path):
    """Whether a profile allows it; the last rule and the innermost one must say the same."""
    found = list(matching(rules, operation, path))
    deepest = max(depth for _, depth in found)
    innermost = {decision for decision, depth in found if depth == deepest}
    assert innermost == {found[-1][0]}, (operation, path, found)
    return found[-1][0] == "allow"


def mounted(args, path):
    """What bubblewrap's arguments let a command do at a path: the last mount over it decides."""
    words, access, perms = list(args), "", ""
    while words:
        word = words.pop(0)
        if word in {"--bind", "--ro-bind"}:
            _, place = words.pop(0), words.pop(0)
            here = "write" if word == "--bind" else "read"
        elif word == "--tmpfs":
            place, here = words.pop(0), "hidden" if perms == "0000" else "write"
        elif word == "--ro-bind-data":
            _, place, here = words.pop(0), words.pop(0), "hidden"
        else:
            perms = (
                words.pop(0)
                if word in {"--perms", "--size", "--remount-ro"} and word == "--perms"
                else perms
            )
            if word in {"--size", "--remount-ro"}:
                words.pop(0)
            continue
        if path == place or path.startswith(place.rstrip("/") + "/"):
            access = here
    return access or "hidden"


NAMES = st.sampled_from(["a", "b", "c d", 'e"f', "g\\h", "ü"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda names: "/w/" + "/".join(names))
SETS = st.lists(PATHS, max_size=4)


@given(root=PATHS, readable=SETS, writable=SETS, kept=SETS, closed=SETS, frozen=st.booleans(), asked=SETS)
def test_a_profile_allows_exactly_what_the_mounts_of_bubblewrap_do(
    root, readable, writable, kept, closed, frozen, asked
):
    launch = Launch(argv=("true",), env={}, cwd="/", root=root, frozen=frozen, writable=tuple(writable))
    args = [
        *(word for path in readable for word in ("--ro-bind", path, path)),
        *bubblewrap_args.workspace_args(launch),
        *bubblewrap_args.read_only_args((path, path) for path in kept),
        *bubblewrap_args.mask_args(MaskedPaths(folders=tuple(closed))),
    ]
    grants = [
        *(PathGrant(path, "read") for path in readable),
        PathGrant(root, "read" if frozen else "write"),
        *(PathGrant(path, "write") for path in writable),
        *(PathGrant(path, "read") for path in kept),
        *(PathGrant(path, "hidden") for path in closed),
    ]
    rules = parsed(seatbelt_profile(grants, network=False, terminal=False))
    for place in {"/", "/w", "/x", root, *readable, *writable, *kept, *closed, *asked}:
        for path in (place, place.rstrip("/") + "/below"):
            access = mounted(args, path)
            assert allowed(rules, READ, path) == (access != "hidden"), path
            assert allowed(rules, EXECUTE, path) == (access != "hidden"), path
            assert allowed(rules, WRITE, path) == (access == "write"), path


def test_what_is_not_granted_is_denied():
    rules = parsed(seatbelt_profile([PathGrant("/w", "write")], network=False, terminal=False))
    for path in ("/etc/passwd", "/Users/me/.ssh/id_ed25519", "/wall"):
        assert not allowed(rules, READ, path)
        assert not allowed(rules, WRITE, path)


def test_the_folders_above_can_be_looked_at_and_not_listed():
    rules = parsed(seatbelt_profile([PathGrant("/Users/me/w", "write")], network=False, terminal=False))
    assert allowed(rules, "file-read-metadata", "/Users/me")
    assert not allowed(rules, READ, "/Users/me")
    assert not allowed(rules, "file-read-metadata", "/Users/me/.ssh")


@pytest.mark.parametrize("network", [False, True])
def test_the_network_is_there_only_where_it_is_allowed(network):
    text = seatbelt_profile([PathGrant("/w", "write")], network=network, terminal=False)
    assert ("(allow network*)" in text) == network


@pytest.mark.parametrize("path", ["relative", "/a\nb", "/a\0b"])
def test_a_path_that_a_profile_cannot_name_is_refused(path):
    with pytest.raises(HostError, match="can't be used"):
        seatbelt_profile([PathGrant(path, "read")], network=False, terminal=False)


def profile_of(launch):
    ready = SeatbeltRunner().confine(launch)
    assert ready.argv[:2] == ("/usr/bin/sandbox-exec", "-p")
    assert ready.argv[3:] == launch.argv
    return ready, parsed(ready.argv[2])


@pytest.fixture
def launch(tmp_path):
    root = tmp_path / "w"
    (root / ".git").mkdir(parents=True)
    (root / ".env").write_text("KEY=1")
    env = {"HOME": str(tmp_path / "home"), "PATH": os.defpath, "SSH_AUTH_SOCK": "/agent"}
    return Launch(
        argv=("bash", "-c", "true"),
        env=env,
        cwd=str(root),
        root=str(root),
        private_globs=(PathGlobs((".env",)),),
        read_only_globs=(PathGlobs((".git",)),),
    )


def test_a_command_writes_to_the_workspace_and_not_to_what_is_kept_or_private(launch):
    ready, rules = profile_of(launch)
    assert allowed(rules, WRITE, f"{launch.root}/src/a.py")
    assert not allowed(rules, WRITE, f"{launch.root}/.git/config")
    assert allowed(rules, READ, f"{launch.root}/.git/config")
    assert not allowed(rules, READ, f"{launch.root}/.env")
    assert not allowed(rules, READ, f"{launch.env['HOME']}/.ssh/id_ed25519")
    assert allowed(rules, WRITE, f"{ready.env['HOME']}/x")
    assert allowed(rules, WRITE, f"{ready.env['TMPDIR']}/x")
    assert "SSH_AUTH_SOCK" not in ready.env


def test_a_frozen_workspace_is_only_read(launch):
    import dataclasses

    _, rules = profile_of(dataclasses.replace(launch, frozen=True))
    assert allowed(rules, READ, f"{launch.root}/a")
    assert not allowed(rules, WRITE, f"{launch.root}/a")


def test_macos_gets_seatbelt_and_is_told_that_nobody_ran_it(monkeypatch):
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")  # a container goes first where there is one
    monkeypatch.setattr(SeatbeltRunner, "unavailable_reason", lambda self: "")
    runner = runner_selection.choose_runner().runner
    assert runner.name == "seatbelt"
    assert not runner.confined
    assert "Not tested on macOS" in runner.boundary


def test_other_systems_are_not_offered_it():
    with pytest.raises(HostError, match="no runner called seatbelt"):
        runner_selection.runner_named("seatbelt")
    assert SeatbeltRunner().unavailable_reason() == "Seatbelt is a part of macOS."
