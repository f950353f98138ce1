"""What the stage of the supply chain says of a lock, whatever pip-audit answers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCK = "one==1.0 \\\n    --hash=sha256:00\ntwo==2.0 ; sys_platform == 'win32' \\\n    --hash=sha256:11\n"
FINE = {"name": "one", "version": "1.0", "vulns": []}
WEAK = {"name": "two", "version": "2.0", "vulns": [{"id": "PYSEC-1"}]}
UNASKED = {"name": "two", "skip_reason": "Dependency not found on PyPI and could not be audited: two (2.0)"}


@pytest.fixture
def audit(tmp_path):
    """The stage's judgement of a lock, with a program in pip-audit's place that gives this answer."""

    def run(answer: str, **variables: str) -> tuple[int, str]:
        (tmp_path / "lock.txt").write_text(LOCK)
        program = tmp_path / "pip-audit"
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\n")
        program.chmod(0o755)
        line = [sys.executable, str(ROOT / ".ci/audit-locks"), str(program), str(tmp_path / "lock.txt")]
        done = subprocess.run(line, capture_output=True, text=True, env=os.environ | variables, timeout=120)
        return done.returncode, done.stdout

    return run


def packages(*found: dict) -> str:
    return json.dumps({"dependencies": found, "fixes": []})


def test_a_known_weakness_fails(audit):
    code, said = audit(packages(FINE, WEAK))
    assert (code, said) == (1, "two 2.0: PYSEC-1\n")


def test_all_looked_up_and_none_weak_passes(audit):
    code, said = audit(packages(FINE, {**WEAK, "vulns": []}), AUDIT="required")
    assert (code, said) == (0, "no known weakness in the 2 versions that were looked up\n")


@pytest.mark.parametrize("answer", [packages(FINE, UNASKED), packages(FINE), "no route to host"])
def test_what_was_not_looked_up_is_said_and_fails_where_it_is_required(audit, answer):
    code, said = audit(answer)
    assert code == 0
    assert "NOT AUDITED" in said
    assert audit(answer, AUDIT="required")[0] == 1
