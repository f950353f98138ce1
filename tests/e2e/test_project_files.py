"""A project's own settings in its pyproject.toml: no tool and no command changes them unasked."""

import sys

import pytest

from handtools import Policy, Reply, coding
from handtools.configuration import load_configuration

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="system: layers need Linux")

PROJECT = '[project]\nname = "x"\nversion = "1"\n'
TABLE = '[tool.handtools]\nexcluded = ["plans"]\n'


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    place = tmp_path / "work"
    (place / "sub").mkdir(parents=True)
    (place / "pyproject.toml").write_text(PROJECT + TABLE)
    (place / "sub/pyproject.toml").write_text(PROJECT + TABLE)
    (place / "other.toml").write_text(PROJECT)
    return place


@pytest.fixture
async def box(root):
    async with coding(root) as toolbox:
        await toolbox.call("read", {"path": "pyproject.toml"})
        yield toolbox


ALTERING = {
    "edit": ("edit", {"path": "pyproject.toml", "old_string": '"plans"', "new_string": '"x"'}),
    "write": ("write", {"path": "pyproject.toml", "content": PROJECT, "mode": "overwrite"}),
    "new": ("write", {"path": "new/pyproject.toml", "content": TABLE}),
    "patch": (
        "patch",
        {"patch": "*** Begin Patch\n*** Delete File: pyproject.toml\n*** End Patch"},
    ),
    "append": ("bash", {"command": "printf '[[tool.handtools.rule]]\\nname=\"x\"\\n' >> pyproject.toml"}),
    "inline": ("bash", {"command": "printf '[tool]\\nhandtools = {}\\n' >> other.toml; mv other.toml n.toml; "
                        "mkdir n; mv n.toml n/pyproject.toml"}),
    "replaced": ("bash", {"command": "mv other.toml pyproject.toml"}),
    "link": ("bash", {"command": "ln -sf other.toml pyproject.toml"}),
    "removed": ("bash", {"command": "rm pyproject.toml"}),
    "nested": ("bash", {"command": "rm -r sub"}),
    "moved": ("bash", {"command": "mv sub elsewhere"}),
    "too large": ("bash", {"command": "head -c 1100000 /dev/zero | tr '\\0' '#' >> pyproject.toml"}),
    "unreadable": ("bash", {"command": "chmod 000 sub/pyproject.toml"}),
}  # fmt: skip


@pytest.mark.parametrize("way", ALTERING)
async def test_what_alters_our_table_waits_for_a_person(box, root, way):
    tool, args = ALTERING[way]
    asked = await box.call(tool, args)
    assert asked.request is not None, asked.text
    assert "handtools settings in the table `[tool.handtools]`" in asked.request.rule
    assert (root / "pyproject.toml").read_text() == PROJECT + TABLE
    assert (root / "sub/pyproject.toml").read_text() == PROJECT + TABLE
    assert load_configuration(root).policy.excluded == ("plans",)
    done = await box.resume(asked.request.call_id, Reply(allow=True))
    assert done.ok, done.text


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("edit", {"path": "pyproject.toml", "old_string": '"1"', "new_string": '"2"'}),
        (
            "bash",
            {"command": "sed -i s/1/2/ pyproject.toml && mkdir -p a && cp other.toml a/pyproject.toml"},
        ),
        ("bash", {"command": "printf '[broken' > other.toml && mv other.toml pyproject.toml.new"}),
        ("bash", {"command": "mkdir b && mv other.toml b/pyproject.toml && mv b c && rm -r c"}),
    ],
)
async def test_other_changes_of_a_pyproject_just_land(box, tool, args):
    done = await box.call(tool, args)
    assert done.ok, done.text


async def test_taking_a_change_of_our_table_back_is_asked_about_too(box, root):
    args = {"path": "pyproject.toml", "old_string": '"plans"', "new_string": '"x"'}
    asked = await box.call("edit", args)
    await box.resume(asked.request.call_id, Reply(allow=True))
    assert '"x"' in (root / "pyproject.toml").read_text()
    back = await box.call("undo", {"name": "pyproject.toml"})
    assert back.request is not None


async def test_why_tells_of_the_question(box):
    args = {"path": "pyproject.toml", "old_string": '"plans"', "new_string": '"x"'}
    decision = await box.why("edit", args)
    assert (decision.verdict, decision.rule) == ("ask", "review")


@pytest.mark.linux("bubblewrap")
async def test_a_command_on_the_real_files_can_not_write_to_our_table(root):
    async with coding(root, runner="bubblewrap", policy=Policy(unattended="allow")) as box:
        script = "echo >> pyproject.toml; mv other.toml pyproject.toml; echo x > free; true"
        started = await box.call("bash", {"command": script, "live": True, "background": True})
        assert started.ok, started.text
        ended = await box.call("jobs", {"action": "wait", "job": started.details.job, "timeout": 60})
        assert ended.ok, ended.text
    assert (root / "pyproject.toml").read_text() == PROJECT + TABLE
    assert (root / "free").exists()
