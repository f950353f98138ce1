"""What a command wrote to stdout and to stderr, apart for programs and together for the model (decision 14)."""

import json

import pytest

from handtools import Policy, Toolbox
from handtools.host.sandbox.runners.runner_selection import runners_by_strength
from handtools.toolbox import CODING, local_workspace
from handtools.tools.bash import MAX_SHOWN_OUTPUT_BYTES

RUNNERS = {runner.name: runner for runner in runners_by_strength()}
SCRIPT = "echo made; echo warned >&2; exit 3"


@pytest.fixture(params=RUNNERS)
def runner(request) -> str:
    if problem := RUNNERS[request.param].unavailable_reason():
        pytest.skip(f"machine: {problem}")
    return request.param


def toolbox(tmp_path, runner: str = "", *, separate_streams: bool = True) -> Toolbox:
    (tmp_path / "work").mkdir()
    workspace = local_workspace(
        tmp_path / "work", state=tmp_path / "state", runner=runner, separate_streams=separate_streams
    )
    return Toolbox(CODING, workspace=workspace, policy=Policy(unattended="allow"))


async def test_the_details_have_both_streams_and_the_text_has_all(tmp_path, runner):
    async with toolbox(tmp_path, runner) as box:
        result = await box.call("bash", {"command": SCRIPT})
    assert (result.details.stdout, result.details.stderr) == ("made\n", "warned\n")
    assert result.details.code == 3
    assert {"made", "warned"} <= set(result.text.split("\n"))
    assert result.details.output_bytes == len("made\nwarned\n")


async def test_unless_asked_for_there_is_one_stream_in_the_order_of_writing(tmp_path):
    async with toolbox(tmp_path, separate_streams=False) as box:
        script = "for i in $(seq 200); do echo out $i; echo err $i >&2; done"
        result = await box.call("bash", {"command": script})
    assert (result.details.code, result.details.stdout, result.details.stderr) == (0, None, None)
    lines = [f"{stream} {number}" for number in range(1, 201) for stream in ("out", "err")]
    assert result.text.split("\n")[:400] == lines


async def test_much_on_both_streams_fills_no_pipe_and_is_cut_in_each(tmp_path):
    async with toolbox(tmp_path) as box:
        script = "seq 400000 & seq -f 'e%.0f' 300000 >&2; wait"
        result = await box.call("bash", {"command": script, "timeout": 300})
    assert result.details.code == 0
    stdout, stderr = result.details.stdout, result.details.stderr
    assert stdout.startswith("1\n2\n") and stdout.endswith("\n399999\n400000\n")
    assert stderr.startswith("e1\ne2\n") and stderr.endswith("\ne299999\ne300000\n")
    assert "[… 300,000 lines, 2,288,895 bytes in total …]" in stderr
    assert max(len(stdout), len(stderr)) < MAX_SHOWN_OUTPUT_BYTES + 100
    assert result.details.output_lines == 700_000


async def test_a_command_that_is_ended_still_shows_what_both_streams_had(tmp_path):
    async with toolbox(tmp_path) as box:
        result = await box.call("bash", {"command": "echo a; echo b >&2; sleep 600", "timeout": 5})
    assert (result.details.ended, result.details.stdout, result.details.stderr) == ("timeout", "a\n", "b\n")


async def test_a_dialect_that_tells_the_streams_apart_has_them(tmp_path):
    async with toolbox(tmp_path) as box:
        action = {"commands": [SCRIPT]}
        result = await box.in_dialect("openai").call("shell", {"action": action})
    (output,) = json.loads(result.text)["output"]
    assert output == {"stdout": "made\n", "stderr": "warned", "outcome": {"type": "exit", "exit_code": 3}}
