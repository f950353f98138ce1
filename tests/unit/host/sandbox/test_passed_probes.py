"""A probe that passed is not repeated; everything else is probed again."""

import json
import os
import time

import pytest

from handtools.host.home_folders import STATE_VARIABLE
from handtools.host.sandbox import passed_probes
from handtools.host.sandbox.passed_probes import PROBES_NAME, forget_passed_probes, problem_unless_passed

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="machine: no /proc")


class Probe:
    """A probe that counts its runs."""

    def __init__(self, problem=""):
        self.problem = problem
        self.runs = 0

    def __call__(self):
        self.runs += 1
        return self.problem


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path))
    return tmp_path / PROBES_NAME


def runs(*subject, problem=""):
    """How often two processes in a row run a probe of a subject."""
    probe = Probe(problem)
    for _ in range(2):
        assert problem_unless_passed(probe, *subject) == problem
    return probe.runs


def test_a_probe_that_passed_is_not_repeated_for_the_same_subject(kept):
    assert runs("bubblewrap", "/usr/bin/bwrap", (1, 2)) == 1
    assert runs("bubblewrap", "/usr/bin/bwrap", (1, 2)) == 0
    assert runs("bubblewrap", "/usr/bin/bwrap", (1, 3)) == 1
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_probe_that_failed_is_repeated(kept):
    assert runs("bubblewrap", problem="It can't confine here.") == 2
    assert not kept.exists()


def test_a_probe_is_repeated_after_a_reboot_and_for_another_user(kept, monkeypatch):
    for machine in (("first boot", "user 0"), ("second boot", "user 0"), ("second boot", "user 1")):
        monkeypatch.setattr(passed_probes, "_machine_and_user", lambda machine=machine: machine)
        assert runs("overlay") == 1


def test_a_file_that_others_could_have_written_is_not_believed(kept):
    assert runs("overlay") == 1
    kept.chmod(0o666)
    assert runs("overlay") == 1  # and it is replaced by our own
    content = kept.read_text()
    kept.unlink()
    (kept.parent / "elsewhere").write_text(content)
    kept.symlink_to("elsewhere")
    assert runs("overlay") == 1


@pytest.mark.parametrize("content", ["", "[1]", '{"a": ["b"]}', "\0", "{"])
def test_a_damaged_file_counts_as_none(kept, content):
    kept.write_text(content)
    assert runs("overlay") == 1


@pytest.mark.parametrize("age", [passed_probes.KEPT_PROBE_SECONDS + 1, -3600])
def test_a_success_is_believed_for_a_day(kept, age):
    assert runs("overlay") == 1
    kept.write_text(json.dumps(dict.fromkeys(json.loads(kept.read_text()), time.time() - age)))
    assert runs("overlay") == 1


def test_all_probes_run_again_after_forgetting(kept):
    assert runs("overlay") == 1
    forget_passed_probes()
    assert runs("overlay") == 1


def test_without_a_state_folder_every_process_probes(tmp_path, monkeypatch):
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "missing"))
    assert runs("overlay") == 2
    assert not (tmp_path / "missing").exists()
