"""The contract of any tool, held by ours."""

from handtools.core.callbacks import Callbacks
from handtools.core.language import LanguageAnswer, RewrittenFile
from handtools.core.web import HostWeb, WebSearchHit
from handtools.runtime.policy import Policy
from handtools.testing.contract import ToolContract
from handtools.testing.stubs import CannedOutput, CannedPage, MemoryCommands, MemoryLanguage, MemoryWeb
from handtools.tools.attach import attach as attach_tool
from handtools.tools.bash import bash as bash_tool
from handtools.tools.edit import edit as edit_tool
from handtools.tools.fetch import fetch as fetch_tool
from handtools.tools.find import find as find_tool
from handtools.tools.grep import grep as grep_tool
from handtools.tools.jobs import jobs as jobs_tool
from handtools.tools.list import list_ as list_tool
from handtools.tools.lsp import lsp as lsp_tool
from handtools.tools.multi_edit import multi_edit as multi_edit_tool
from handtools.tools.now import now as now_tool
from handtools.tools.patch import patch as patch_tool
from handtools.tools.read import read as read_tool
from handtools.tools.skill import skill as skill_tool
from handtools.tools.task import task as task_tool
from handtools.tools.text_editor import text_editor
from handtools.tools.think import think as think_tool
from handtools.tools.undo import undo as undo_tool
from handtools.tools.web_search import web_search as web_search_tool
from handtools.tools.write import write as write_tool


async def answered(_):
    return "done"


class TestRead(ToolContract):
    tool = read_tool
    files = {"a.txt": b"one\ntwo\n"}
    args = {"path": "a.txt"}


class TestGrep(ToolContract):
    tool = grep_tool
    files = {"a.py": b"def one():\n    return two\n"}
    args = {"pattern": "two"}


class TestFind(ToolContract):
    tool = find_tool
    files = {"a.txt": b"one\ntwo\n", "b/c.py": b""}
    args = {"pattern": "*"}


class TestList(ToolContract):
    tool = list_tool
    files = {"a.txt": b"one\ntwo\n", "b/c.py": b""}
    args = {"depth": 2}


class TestEdit(ToolContract):
    tool = edit_tool
    files = {"a.txt": b"one\ntwo\n"}
    args = {"path": "a.txt", "old_string": "one", "new_string": "1"}


class TestMultiEdit(ToolContract):
    tool = multi_edit_tool
    files = {"a.txt": b"one\ntwo\n", "b.txt": b"three\n"}
    args = {
        "path": "a.txt",
        "edits": [
            {"old_string": "one", "new_string": "1"},
            {"insert_line": 3, "new_string": "and more"},
            {"path": "b.txt", "old_string": "three", "new_string": "3"},
            {"path": "new/c.txt", "new_string": "four\n"},
        ],
    }


class TestPatch(ToolContract):
    tool = patch_tool
    files = {"a.txt": b"one\ntwo\n", "b.txt": b"three\n", "c.txt": b"four\n"}
    args = {
        "patch": "*** Begin Patch\n*** Update File: a.txt\n*** Move to: moved/a.txt\n one\n-two\n+2\n"
        "*** Add File: new/d.txt\n+five\n*** Delete File: c.txt\n*** End Patch\n"
    }


class TestTextEditor(ToolContract):
    tool = text_editor()
    files = {"a.txt": b"one\ntwo\n"}
    args = {"command": "str_replace", "path": "a.txt", "old_str": "one", "new_str": "1"}


class TestTextEditorOfTheFirstEdition(TestTextEditor):
    tool = text_editor("text_editor_20250124")
    args = {"command": "insert", "path": "a.txt", "insert_line": 0, "new_str": "zero"}


class TestBash(ToolContract):
    tool = bash_tool
    args = {"command": "echo one"}

    def commands(self):
        return MemoryCommands({"echo one": CannedOutput(b"one\n")})


class TestJobs(ToolContract):
    tool = jobs_tool
    args = {}

    def commands(self):
        return MemoryCommands()


class TestWrite(ToolContract):
    tool = write_tool
    files = {"a.txt": b"one\n"}
    args = {"path": "new/b.txt", "content": "two\n"}


class TestUndo(ToolContract):
    tool = undo_tool
    files = {"a.txt": b"one\n"}
    args = {"name": "a.txt", "action": "versions"}


class TestThink(ToolContract):
    tool = think_tool
    args = {"thought": "hm"}


class TestNow(ToolContract):
    tool = now_tool
    args = {}


class TestSkill(ToolContract):
    tool = skill_tool
    files = {".agents/skills/tea/SKILL.md": b"---\nname: tea\ndescription: Makes tea.\n---\nBoil water.\n"}
    args = {"name": "tea"}


class TestFetch(ToolContract):
    tool = fetch_tool
    args = {"url": "https://docs.example/"}

    def web(self) -> HostWeb:
        return MemoryWeb({"https://docs.example/": CannedPage(data=b"<h1>Guide</h1><p>Text.</p>")})

    policy = Policy(hosts=("docs.example",))


class TestWebSearch(ToolContract):
    tool = web_search_tool
    args = {"query": "guide"}

    def web(self) -> HostWeb:
        return MemoryWeb(found=(WebSearchHit(title="Guide", url="https://docs.example/"),))

    policy = Policy(hosts=("engine.example",))


class TestAttach(ToolContract):
    tool = attach_tool
    files = {"a.txt": b"one"}
    args = {"paths": ["a.txt"]}

    def callbacks(self):
        return Callbacks(deliver=answered)


class TestTask(ToolContract):
    tool = task_tool
    args = {"title": "Look", "prompt": "Look for it."}

    def callbacks(self):
        return Callbacks(delegate=answered)


class TestLsp(ToolContract):
    tool = lsp_tool
    files = {"a.py": b"total = 1\n"}
    args = {"operation": "rename", "path": "a.py", "symbol": "total", "text": "whole"}

    def language(self):
        changed = RewrittenFile("a.py", b"total = 1\n", b"whole = 1\n")
        return MemoryLanguage(answers={"rename": LanguageAnswer(server="memory", files=(changed,))})
