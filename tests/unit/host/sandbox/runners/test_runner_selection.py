"""Choosing a runner: the strongest that works, with reasons."""

import os
from dataclasses import replace

import pytest

from handtools.core.errors import HostError
from handtools.host.sandbox.launch import Launch, confined_launch
from handtools.host.sandbox.runners.runner_selection import (
    UnconfinedRunner,
    choose_runner,
    runner_named,
    runners_by_strength,
)


class Rung:
    boundary = "For tests."
    confined = True

    def __init__(self, name, problem=""):
        self.name = name
        self.problem = problem

    def unavailable_reason(self):
        return self.problem

    def confine(self, launch, resources):
        self.made = os.open(os.devnull, os.O_RDONLY)
        return replace(UnconfinedRunner().confine(launch, resources), runner_fds=(self.made,))


def test_the_first_that_works_is_taken_and_the_others_are_explained():
    choice = choose_runner([Rung("strong", "No namespaces here."), Rung("weak"), Rung("weaker")])
    assert choice.runner.name == "weak"
    assert [(each.name, each.reason) for each in choice.skipped_runners] == [
        ("strong", "No namespaces here.")
    ]
    assert "No namespaces here." in choice.reason


def test_a_wanted_runner_is_never_replaced_by_a_weaker_one():
    with pytest.raises(HostError, match="No namespaces here"):
        choose_runner([Rung("strong", "No namespaces here."), Rung("weak")], wanted="strong")


def test_a_runner_that_does_not_exist_is_an_error():
    with pytest.raises(HostError, match="nothing"):
        choose_runner([Rung("weak")], wanted="nothing")


def test_descriptors_of_the_runner_are_closed_and_others_are_not():
    runner, ours = Rung("strong"), os.open(os.devnull, os.O_RDONLY)
    try:
        with confined_launch(runner, Launch(argv=("true",), env={}, cwd="/", root="/x", pass_fds=(ours,))):
            os.fstat(runner.made)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(runner.made)
        os.fstat(ours)
    finally:
        os.close(ours)


@pytest.mark.linux("supervisors")  # without them a container is the strongest that there is
def test_a_container_is_asked_for_by_name_with_its_image():
    runner = runner_named("container:python:3.12-slim")
    assert (runner.name, runner.image) == ("container", "python:3.12-slim")
    assert "container" not in [each.name for each in runners_by_strength()], "it is never taken unasked"


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(HostError, match="Available") as refused:
        runner_named("docker")
    known = str(refused.value).partition("Available: ")[2].rstrip(".").split(", ")
    assert sorted(known) == sorted({*(runner.name for runner in runners_by_strength()), "container"})
