"""Owners: who is there and who is gone."""

import subprocess

import pytest

from handtools.host.sandbox.containers import container_pool


def test_we_are_there():
    assert not container_pool.is_owner_gone(container_pool.owner_label())


def test_a_process_that_has_ended_is_gone():
    gone = subprocess.Popen(["true"])
    gone.wait()
    boot, namespace, _, started = container_pool.owner_label().split(" ")
    assert container_pool.is_owner_gone(f"{boot} {namespace} {gone.pid} {started}")


def test_another_process_with_our_number_is_not_us():
    boot, namespace, pid, _ = container_pool.owner_label().split(" ")
    assert container_pool.is_owner_gone(f"{boot} {namespace} {pid} 1")


def test_all_of_an_earlier_start_of_the_machine_are_gone():
    _, namespace, pid, started = container_pool.owner_label().split(" ")
    assert container_pool.is_owner_gone(f"another {namespace} {pid} {started}")


def test_one_in_another_namespace_is_left_alone():
    boot, _, _, _ = container_pool.owner_label().split(" ")
    assert not container_pool.is_owner_gone(f"{boot} pid:[1] 1 1")


@pytest.mark.parametrize("owner", ["", "x", "a b c"])
def test_a_label_of_others_is_left_alone(owner):
    assert not container_pool.is_owner_gone(owner)
