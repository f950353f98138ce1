"""Workspaces as Inspect's sandbox environment, in a real evaluation with Inspect's own tools and a scorer."""

import runpy
from pathlib import Path

import pytest
from inspect_ai import Task, eval_async
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.tool import ToolDef, bash
from inspect_ai.util import OutputLimitExceededError, sandbox

from tests.adapters.driver_inspect_ai import scripted_model
from tests.adapters.drivers import Wanted

EXAMPLE = Path(__file__).parents[2] / "examples" / "inspect_ai" / "inspect_ai_sandbox.py"
pytestmark = pytest.mark.anyio
sandbox_class = runpy.run_path(str(EXAMPLE))["HandtoolsSandbox"]


@scorer(metrics=[accuracy()])
def passing():
    async def score(_state, _target):
        ran = await sandbox().exec(["python3", "-B", "test_sums.py"])
        seen = await sandbox().read_file("sums.py")
        return Score(value=1 if ran.success else 0, explanation=seen)

    return score


@pytest.mark.linux("bubblewrap or Landlock")  # else somebody is asked
async def test_an_evaluation_runs_in_workspaces(tmp_path):
    template = tmp_path / "template"
    template.mkdir()
    (template / "sums.py").write_text("def add(a, b):\n    return a - b\n")
    [name] = ToolDef(bash()).parameters.required  # Inspect has changed its mind about it
    mend = [Wanted("bash", {name: "sed -i 's/a - b/a + b/' sums.py"}, "call_1")]
    look = [Wanted("bash", {name: "cat sums.py"}, "call_1")]
    test = {"test_sums.py": "from sums import add\nassert add(1, 2) == 3\n"}
    task = Task(
        dataset=[Sample("Mend it.", files=test), Sample("Look.", files=test)],
        solver=react(tools=[bash()], submit=False),
        scorer=passing(),
        sandbox=("handtools", str(template)),
    )
    model = scripted_model(mend, "Done.", look, "Done.")
    [log] = await eval_async(task, model=model, max_samples=1, log_dir=str(tmp_path / "logs"))
    assert log.status == "success", log.error
    # What one sample changed, no other sees, nor the template.
    found = [sample.scores["passing"] for sample in log.samples]
    assert [each.value for each in found] == [1, 0]
    assert "a + b" in found[0].explanation and "a - b" in found[1].explanation
    assert "a - b" in (template / "sums.py").read_text()
    assert sandbox_class.store.names() == []


@pytest.mark.linux("bubblewrap or Landlock")  # else somebody is asked
async def test_a_sandbox_runs_reads_and_writes_as_inspect_says():
    await sandbox_class.task_init("t", None)
    made = await sandbox_class.sample_init("t", None, {})
    box = made["default"]
    try:
        for contents in ("line\r\n✨", b"\xc3\x28", "", b"x" * 400_000):
            await box.write_file("deep/a file", contents)
            assert await box.read_file("deep/a file", text=isinstance(contents, str)) == contents
        ran = await box.exec(
            ["sh", "-c", "cat; echo $NAME >&2; pwd; exit 3"], "in", "deep", {"NAME": "it's"}
        )
        assert (ran.success, ran.returncode, ran.stderr.strip()) == (False, 3, "it's")
        assert ran.stdout.startswith("in") and ran.stdout.strip().endswith("/deep")
        with pytest.raises(FileNotFoundError):
            await box.read_file("none")
        for outside in ("/etc/passwd", "../state"):
            with pytest.raises(PermissionError):
                await box.read_file(outside)
            with pytest.raises(PermissionError):
                await box.write_file(outside, "x")
        with pytest.raises(TimeoutError):
            await box.exec(["sleep", "60"], timeout=1)
        with pytest.raises(OutputLimitExceededError):
            await box.exec(["seq", "100000"])
        with pytest.raises(PermissionError):
            await box.exec(["id"], user="root")
    finally:
        await sandbox_class.sample_cleanup("t", None, made, False)
    assert sandbox_class.store.names() == []
