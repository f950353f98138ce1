"""Owners: who is there and who is gone."""

import subprocess

import pytest

from handtools.host.commands.container import owners


def test_we_are_there():
    assert not owners.left_behind(owners.ours())


def test_a_process_that_has_ended_is_gone():
    gone = subprocess.Popen(["true"])
    gone.wait()
    boot, namespace, _, started = owners.ours().split(" ")
    assert owners.left_behind(f"{boot} {namespace} {gone.pid} {started}")


def test_another_process_with_our_number_is_not_us():
    boot, namespace, pid, _ = owners.ours().split(" ")
    assert owners.left_behind(f"{boot} {namespace} {pid} 1")


def test_all_of_an_earlier_start_of_the_machine_are_gone():
    _, namespace, pid, started = owners.ours().split(" ")
    assert owners.left_behind(f"another {namespace} {pid} {started}")


def test_one_in_another_namespace_is_left_alone():
    boot, _, _, _ = owners.ours().split(" ")
    assert not owners.left_behind(f"{boot} pid:[1] 1 1")


@pytest.mark.parametrize("owner", ["", "x", "a b c"])
def test_a_label_of_others_is_left_alone(owner):
    assert not owners.left_behind(owner)
