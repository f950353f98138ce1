"""What all tests share: profiles, one async backend, and no silent skips in CI."""

import os
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

from handtools.host.agent_shell_detection import AGENT_SHELL_VARIABLES

# Tests that are not about language servers start none, whatever is installed; children inherit this.
os.environ["HANDTOOLS_LANGUAGE"] = "off"
# Nor does it matter who runs the tests: what an agent's shell is refused, some of them do as a person.
for _name in AGENT_SHELL_VARIABLES:
    os.environ.pop(_name, None)
# A shell that starts us in the background has SIGINT and SIGQUIT ignored, and children would inherit that, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGQUIT"):
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}
MACHINE = "machine: "
"""A skip whose reason begins so is about the machine (another system, not root), and is allowed in CI."""

settings.register_profile("dev", max_examples=100, deadline=None)
# The gate draws the same examples for the same test, so that it says the same of the same commit. Other draws are
# for `dev` (each day) and `nightly` (many): what those find becomes an `@example`.
settings.register_profile(
    "ci",
    max_examples=100,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("nightly", settings.get_profile("ci"), max_examples=10_000, derandomize=False)
# Once before a release, for a property on which much depends: `HYPOTHESIS_PROFILE=thorough pytest TEST`.
settings.register_profile("thorough", settings.get_profile("nightly"), max_examples=100_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if IN_CI else "dev"))


@pytest.fixture
def anyio_backend():
    return "asyncio"


def pytest_collection_modifyitems(items):
    """A test about parts of Linux (`@pytest.mark.linux("leases")`) has nothing to say where one is missing.

    With `"bubblewrap or Landlock"` it has where one of the two is left.
    """
    hidden = set(filter(None, os.environ.get("HANDTOOLS_TEST_HIDDEN", "").split(",")))
    for item in items:
        parts = {part for mark in item.iter_markers("linux") for part in mark.args}
        if parts and not sys.platform.startswith("linux"):
            item.add_marker(pytest.mark.skip(reason=f"{MACHINE}not Linux"))
        elif missing := {
            part for part in parts if "all" in hidden or hidden.issuperset(part.split(" or "))
        }:
            item.add_marker(pytest.mark.skip(reason=f"{MACHINE}{', '.join(sorted(missing))} hidden"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """In CI a part that is missing is a failure: a skipped test proves nothing."""
    report = yield
    # What somebody else's suite leaves out is theirs to decide.
    foreign = item.get_closest_marker("suite_of_an_sdk") is not None
    if IN_CI and report.skipped and not foreign and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not reason.removeprefix("Skipped: ").startswith(MACHINE):
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} was skipped in CI: {reason}"
    return report
