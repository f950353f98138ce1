"""The frame of the host-side attacks notices every kind of success: the corpus can't pass by seeing nothing.

The whole corpus is `python -m bench escapes --family host`; here is one success of each kind, made on purpose.
"""

import http.client
import json
import os
import socket
import subprocess
import sys

import pytest

from bench.escapes.host import attempts, corpus
from bench.escapes.host.attempts import attempt, known
from bench.escapes.host.place import Person
from handtools import Policy
from handtools.runtime.policy import DEFAULTS

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="machine: no process handles")


def test_an_attack_that_does_nothing_is_stopped():
    async def nothing(place):
        await place.call("read", path="notes.txt")

    assert attempt(nothing) == []


def test_code_outside_is_noticed_by_its_mark():
    async def outside(place):
        place.begin()
        subprocess.run(["sh", "-c", place.payload], check=True)

    assert any(verdict.startswith("ran outside") for verdict in attempt(outside))


def test_code_inside_a_sandbox_leaves_no_mark():
    async def inside(place):
        await place.bash(place.payload)

    assert attempt(inside) == []


def test_code_outside_is_noticed_by_a_connection():
    async def outside(place):
        place.begin()
        socket.create_connection(("127.0.0.1", place.port)).close()

    assert attempt(outside) == ["ran outside: it reached a listener on loopback"]


def test_a_secret_in_an_answer_is_noticed():
    async def shown(place):
        place.open(policy=Policy(rules=()))
        await place.call("read", path=".env")

    assert attempt(shown) == ["shown: the secret DOTENV"]


def test_a_secret_in_an_attachment_is_noticed():
    async def shown(place):
        place.open(policy=Policy(rules=()))
        await place.call("attach", paths=["deploy.pem"])

    assert attempt(shown) == ["shown: the secret PEM"]


def test_a_secret_in_a_kept_output_is_noticed():
    async def kept(place):
        place.begin()
        folder = place.state / "work-0" / "outputs"
        folder.mkdir(parents=True)
        (folder / "one").write_text(place.secrets["OUTSIDE"])

    assert attempt(kept) == ["shown: the secret OUTSIDE"]


@pytest.mark.parametrize(
    "path", [".vscode/tasks.json", "sub/.git/hooks/pre-commit", ".github/workflows/ci.yml", ".ENVRC"]
)
def test_a_protected_change_is_noticed(path):
    async def changed(place):
        place.begin()
        place.put(path, "evil\n")

    assert f"changed without a question: {path}" in attempt(changed)


@pytest.mark.parametrize(
    "script",
    [
        "ln -s ../outside out",
        "mkdir -p b/objects b/refs; echo x > b/HEAD",
        "mkdir -p b c/objects c/refs; echo x > b/HEAD; echo ../c > b/commondir",
        "cp /bin/true s; chmod 4755 s",
        "mkdir real; ln -s real .vscode",
    ],
)
def test_what_programs_trust_under_another_guise_is_noticed(script):
    async def landed(place):
        place.begin()
        place.shell(script)

    assert len([v for v in attempt(landed) if v.startswith("changed without a question")]) == 1


def test_a_change_outside_the_workspace_is_noticed():
    async def changed(place):
        place.begin()
        (place.home / ".bashrc").write_text("evil\n")

    (verdict,) = attempt(changed)
    assert verdict.startswith("changed outside the workspace")


def test_what_a_person_agreed_to_is_no_success():
    async def agreed(place):
        place.allow(".vscode")
        place.open(person=Person(()))
        await place.call("write", path=".vscode/a.json", content="fine\n")
        assert (place.workspace / ".vscode" / "a.json").exists()

    assert attempt(agreed) == []


def test_memory_is_noticed(monkeypatch):
    monkeypatch.setattr(attempts, "GROWTH_BYTES", 64 << 20)

    async def grows(place):
        place.begin()
        assert len(bytes(range(256)) * (1 << 19)) == 128 << 20

    (verdict,) = attempt(grows)
    assert verdict.startswith("our process grew by")


def test_an_attack_that_never_ends_is_ended_and_noticed(monkeypatch):
    monkeypatch.setattr(attempts, "ATTEMPT_SECONDS", 0.5)

    async def endless(place):
        place.begin()
        place.race("notes.txt", "src")
        while True:
            os.sched_yield()

    assert attempt(endless)[0] == "took longer than 0.5 s"


def test_a_failure_of_our_process_is_noticed():
    async def fails(place):
        place.begin()
        raise RecursionError("too deep")

    assert attempt(fails) == ["our process failed: RecursionError: too deep"]


def test_a_process_that_dies_is_noticed():
    async def dies(place):
        place.begin()
        os.abort()

    (verdict,) = attempt(dies)
    assert verdict.startswith("our process failed")


def test_a_workspace_in_which_nothing_works_any_more_is_noticed():
    async def spoils(place):
        place.begin()
        place.put("later.txt", "in the way\n")

    assert any(verdict.startswith("write then ended as error") for verdict in attempt(spoils))


def test_something_else_than_what_was_approved_is_noticed():
    async def confuses(place):
        person = Person(("evil",))
        place.open(person=person, policy=Policy(defaults=DEFAULTS | {"run": "ask"}))
        await place.bash("echo harmless", live=True, background=True)
        return "approved: something else ran" if person.agreed else None

    assert attempt(confuses) == ["approved: something else ran"]


def test_a_person_who_sees_what_alarms_them_says_no():
    async def asks(place):
        person = Person(("evil",))
        place.open(person=person)
        await place.call("write", path=".vscode/a.json", content="evil\n")
        return "approved" if person.agreed or not person.seen else None

    assert attempt(asks) == []


def test_what_another_token_is_told_is_judged_and_what_its_owner_is_told_is_not():
    async def tells(place):
        from bench.escapes.host.server import serve

        site = await serve(place)
        secret = place.secrets["VICTIM"]
        site.victim.call("bash", command=f"echo {secret}")
        assert not [line for line in place.transcript.read_text().splitlines() if secret in line]
        site.attacker.note(http.client.OK, json.dumps({"text": secret}))
        return site.check()

    assert attempt(tells) == ["shown: the secret VICTIM"]


def test_every_attack_says_what_it_tries_and_names_stand_once():
    attacks = known()
    assert len(attacks) >= 60
    assert len({each.title for each in attacks}) == len(attacks)
    assert all(each.sentence.endswith(".") for each in attacks)
    assert set(corpus.QUICK) <= {each.title for each in attacks}


@pytest.mark.skipif(os.geteuid() != 0, reason="machine: not root")
def test_the_corpus_runs_as_an_ordinary_user():
    words = [
        "-m",
        "bench",
        "escapes",
        "--user",
        "5001",
        "--attack",
        "links/link_to_a_private_file",
        "--told",
    ]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    if "no interpreter" in done.stderr:
        pytest.skip("machine: no interpreter for that user")
    assert done.returncode == 0, done.stderr
    assert "host: attempts stopped, of 1" in done.stdout
