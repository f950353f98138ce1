"""What every HostLanguage owes its callers: servers of this machine, the fake, and none at all."""

import sys
from pathlib import Path

import anyio
import pytest

from handtools.core.changes import Change, ChangeSet
from handtools.core.errors import ToolError
from handtools.core.language import DiagnosticReport, LanguageQuestion
from handtools.host.language.local_language import LocalLanguage, NoLanguage
from handtools.host.language.servers import LanguageServer
from handtools.host.sandbox.runners.runner_selection import UnconfinedRunner
from handtools.testing.stubs import MemoryLanguage

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[1] / "e2e" / "language" / "bad_server.py"


def local(root):
    """A scripted server that behaves: an error for each line that says so, as the fake has it."""
    program = root.parent / "good-server"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {SERVER} good\n")
    program.chmod(0o755)
    (root / "good.toml").write_text("")
    server = LanguageServer(
        name="good",
        languages={".py": "python"},
        command=(program.name,),
        markers=("good.toml",),
        install="pip install example-server",
        proof="pull",
        runs_code=False,
    )
    return LocalLanguage(
        root,
        cache=root.parent / "cache",
        runner=UnconfinedRunner,
        servers=[server],
        search_path=str(root.parent),
    )


@pytest.fixture(params=["local", "memory", "none"])
def language(request, tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    made = {"local": lambda: local(root), "memory": MemoryLanguage, "none": NoLanguage}[request.param]()
    yield made, root
    made.close()


async def reviewed(language, root, path, before, after):
    """The review of a change, asked again until something is proved."""
    (root / path).write_bytes(after)
    change = ChangeSet.of(Change.of(path, before=before, after=after))
    with anyio.fail_after(60):
        while True:
            late = []
            review = await language.review(
                change, ignored=(), private_globs=(), timeout=30.0, late=late.append
            )
            if not review.unknown:
                return review


async def test_a_file_nobody_speaks_for_has_a_reason_and_an_empty_review(language):
    made, root = language
    assert not made.speaks("a.unheard")
    assert made.missing_server_sentence("a.unheard")
    review = await reviewed(made, root, "a.unheard", b"a\n", b"ERROR b\n")
    assert review.deltas == ()


async def test_speaking_and_missing_agree(language):
    made, _ = language
    assert made.speaks("a.py") == (made.missing_server_sentence("a.py") == "")


async def test_a_new_error_is_new_and_its_repair_fixes_it(language):
    made, root = language
    if not made.speaks("a.py"):
        assert (await reviewed(made, root, "a.py", b"fine\n", b"ERROR x\n")).verdicts == ()
        return
    broken = await reviewed(made, root, "a.py", b"fine\n", b"\nERROR x\n")
    assert [(each.line, each.path) for delta in broken.deltas for each in delta.new] == [(2, "a.py")]
    mended = await reviewed(made, root, "a.py", b"\nERROR x\n", b"fine\n")
    assert [len(delta.fixed) for delta in mended.deltas] == [1]
    assert not any(delta.new or delta.still for delta in mended.deltas)
    assert all(isinstance(each, DiagnosticReport) and each.standing == "fresh" for each in mended.verdicts)


async def test_a_question_that_can_t_be_answered_is_an_error_for_the_model(language):
    made, root = language
    (root / "a.py").write_text("fine\n")
    with pytest.raises(ToolError):
        await made.ask(LanguageQuestion(kind="implementations", path="a.py", line=1), private_globs=())


async def test_warming_returns_at_once_and_closing_twice_is_fine(language):
    made, root = language
    (root / "a.py").write_text("fine\n")
    made.warm("a.py", private_globs=())
    made.close()
    made.close()


async def test_every_speaker_says_how_to_install_it(language):
    made, _ = language
    assert all(each.name and each.install for each in made.known_servers())
