"""Lsp: what a model gets, over a fake server."""

import pytest

from handtools.core.call import Call
from handtools.core.language import (
    CodeLocation,
    Diagnostic,
    DiagnosticReport,
    LanguageAnswer,
    LanguageQuestion,
    RewrittenFile,
)
from handtools.runtime.policy import Policy
from handtools.runtime.policy.rules import Rule
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.testing.stubs import MemoryLanguage
from handtools.text.search.glob import any_covers
from handtools.tools.lsp import lsp
from handtools.tools.undo import undo

pytestmark = pytest.mark.anyio

SOURCE = b"class Box:\n    def total(self):\n        return 1\n\n\ndef use(box):\n    return box.total()\n"


class Asked(MemoryLanguage):
    """Notes the questions."""

    questions: list[LanguageQuestion]

    async def ask(self, question, *, private_globs):
        self.questions.append(question)
        return await super().ask(question, private_globs=private_globs)


def box(answers=None, files=None, **options):
    language = Asked(answers=answers or {})
    language.questions = []
    tools = memory_toolbox(files or {"a.py": SOURCE}, tools=[lsp, undo], language=language, **options)
    return tools, language


def places(*lines, path="a.py"):
    return LanguageAnswer(
        server="memory", places=tuple(CodeLocation(path, line, 4, line, "total") for line in lines)
    )


@pytest.mark.claim("lsp.by_name")
async def test_a_symbol_is_found_by_its_name_and_line_without_columns():
    tools, language = box({"definition": places(2)})
    await tools.call("lsp", {"operation": "definition", "path": "a.py", "symbol": "total", "line": 7})
    assert (language.questions[0].line, language.questions[0].column) == (7, 15)


async def test_a_line_that_is_a_little_off_is_forgiven():
    tools, language = box({"definition": places(2)})
    await tools.call("lsp", {"operation": "definition", "path": "a.py", "symbol": "total", "line": 6})
    assert language.questions[0].line == 7


async def test_without_a_line_it_is_where_the_file_defines_it():
    tools, language = box({"references": places(2, 7)})
    await tools.call("lsp", {"operation": "references", "path": "a.py", "symbol": "Box.total"})
    assert (language.questions[0].line, language.questions[0].column) == (2, 8)


async def test_a_name_that_is_not_there_is_refused_with_the_lines_where_it_is():
    tools, _ = box()
    result = await tools.call("lsp", {"operation": "hover", "path": "a.py", "symbol": "use", "line": 1})
    assert result.fault.code == "no_match"
    assert "lines 6" in result.text
    result = await tools.call("lsp", {"operation": "hover", "path": "a.py", "symbol": "absent"})
    assert "is not in a.py" in result.text


@pytest.mark.claim("lsp.lines")
async def test_answers_are_code_lines_with_the_symbols_around_them():
    tools, _ = box({"references": places(2, 7)})
    result = await tools.call("lsp", {"operation": "references", "path": "a.py", "symbol": "total"})
    assert "[use 6-7]" in result.text
    assert "7:    return box.total()" in result.text
    assert "Showing 2 of 2 (memory)" in result.text
    assert [place.line for place in result.details.places] == [2, 7]


async def test_many_answers_come_in_pages():
    body = b"".join(b"x%d = total\n" % n for n in range(30))
    answer = LanguageAnswer(
        server="memory", places=tuple(CodeLocation("a.py", n + 1, 6, n + 1) for n in range(30))
    )
    tools, _ = box({"references": answer}, {"a.py": body})
    args = {"operation": "references", "path": "a.py", "symbol": "total", "limit": 20}
    first = await tools.call("lsp", args)
    second = await tools.call("lsp", {**args, "cursor": first.details.cursor})
    lines = [place.line for place in (*first.details.places, *second.details.places)]
    assert lines == list(range(1, 31))
    assert second.details.cursor is None


@pytest.mark.claim("lsp.rename")
async def test_a_rename_is_one_change_that_undo_takes_back():
    files = {f"m{n}.py": b"total = %d\n" % n for n in range(30)}
    answer = LanguageAnswer(
        server="memory",
        files=tuple(
            RewrittenFile(path, data, data.replace(b"total", b"whole")) for path, data in files.items()
        ),
    )
    tools, _ = box({"rename": answer}, files)
    args = {"operation": "rename", "path": "m0.py", "symbol": "total", "text": "whole"}
    call = Call(tool="lsp", args=args)
    result = await tools.call(call)
    assert "Renamed `total` to `whole` in 30 files" in result.text
    assert all(data.startswith(b"whole") for data in tools.workspace.files.files.values())
    assert len(result.changes.touched) == 30
    await tools.call("undo", {"scope": "call", "name": call.id})
    assert tools.workspace.files.files == files


async def test_a_rename_is_previewed_before_anything_is_written():
    seen = []

    async def approver(approval):
        seen.append(approval)
        return

    files = {"a.py": b"total = 1\n", "b.py": b"import total\n"}
    answer = LanguageAnswer(
        server="memory",
        files=tuple(
            RewrittenFile(path, data, data.replace(b"total", b"whole")) for path, data in files.items()
        ),
    )
    ask = Rule("ask", "ask", "A person decides.", effects=frozenset({"change"}))
    tools, _ = box({"rename": answer}, files, policy=Policy(rules=(ask,)), approver=approver)
    result = await tools.call(
        "lsp", {"operation": "rename", "path": "a.py", "symbol": "total", "text": "whole"}
    )
    assert result.status == "pending"
    assert "+whole = 1" in seen[0].preview
    assert "+import whole" in seen[0].preview
    assert tools.workspace.files.files == files


@pytest.mark.claim("lsp.actions")
async def test_actions_are_listed_and_one_is_made_by_its_title():
    class Fixing(Asked):
        async def ask(self, question, *, private_globs):
            if question.text:
                return LanguageAnswer(server="memory", files=(RewrittenFile("a.py", SOURCE, b"fixed\n"),))
            return LanguageAnswer(server="memory", titles=("Remove it", "Keep it"))

    tools = memory_toolbox({"a.py": SOURCE}, tools=[lsp], language=Fixing())
    listed = await tools.call("lsp", {"operation": "actions", "path": "a.py", "line": 3})
    assert listed.text == "Remove it\nKeep it"
    made = await tools.call("lsp", {"operation": "actions", "path": "a.py", "line": 3, "text": "Remove it"})
    assert "Made: Remove it in 1 file" in made.text
    assert tools.workspace.files.files["a.py"] == b"fixed\n"


@pytest.mark.claim("lsp.fresh")
async def test_diagnostics_say_unknown_rather_than_clean():
    error = Diagnostic("a.py", 3, 8, "wrong type", "E1")
    proved = DiagnosticReport("a.py", "memory", "fresh", (error,))
    tools, _ = box({"diagnostics": LanguageAnswer(server="memory", verdicts=(proved,))})
    result = await tools.call("lsp", {"operation": "diagnostics", "path": "a.py"})
    assert "1 error (memory).\na.py:3:9 wrong type [E1]" in result.text
    unknown = DiagnosticReport("a.py", "memory", "unknown", why="server still checking")
    tools, _ = box({"diagnostics": LanguageAnswer(server="memory", verdicts=(unknown,))})
    result = await tools.call("lsp", {"operation": "diagnostics", "path": "a.py"})
    assert "unknown" in result.text
    assert "No errors" not in result.text
    assert result.details.unknown == ["a.py"]


@pytest.mark.claim("lsp.missing")
async def test_a_file_type_without_a_server_is_refused_with_the_command_that_installs_one():
    tools, _ = box(files={"a.zig": b"x\n"})
    result = await tools.call("lsp", {"operation": "symbols", "path": "a.zig"})
    assert result.fault.code == "unavailable"
    assert "pip install example-server" in result.text


async def test_the_file_is_checked_first():
    tools, language = box()
    result = await tools.call("lsp", {"operation": "symbols", "path": "absent.py"})
    assert result.fault.code == "not_found"
    assert language.questions == []


async def test_what_rules_hide_is_in_no_answer():
    hide = Rule("secrets", "deny", "No.", effects=frozenset({"read"}), paths=("secret/**",))
    answer = LanguageAnswer(
        server="memory",
        places=(CodeLocation("a.py", 2, 8, 2), CodeLocation("secret/k.py", 1, 0, 1)),
        verdicts=(DiagnosticReport("secret/k.py", "memory", "fresh"),),
    )
    files = {"a.py": SOURCE, "secret/k.py": b"total\n"}
    tools, language = box(
        {"references": answer, "diagnostics": answer}, files, policy=Policy(rules=(hide,))
    )
    result = await tools.call("lsp", {"operation": "references", "path": "a.py", "symbol": "total"})
    assert "secret" not in result.text
    assert any_covers(language.private_globs[0], "secret/k.py")
    assert "secret" not in (await tools.call("lsp", {"operation": "diagnostics"})).text
    result = await tools.call("lsp", {"operation": "symbols", "path": "secret/k.py"})
    assert result.status == "denied"


async def test_what_an_operation_needs_is_said():
    tools, _ = box()
    for args, said in (
        ({"operation": "hover"}, "needs a `path`"),
        ({"operation": "hover", "path": "a.py"}, "needs a `symbol`"),
        ({"operation": "rename", "path": "a.py", "symbol": "total"}, "needs `text`"),
        ({"operation": "actions", "path": "a.py"}, "needs a `line`"),
    ):
        assert said in (await tools.call("lsp", args)).text
