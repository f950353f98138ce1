"""Patches as models write them, parsed and laid on a text: a patch or a refusal with its line, and so back again."""

from handtools.text.patch_model import MalformedPatch, invert_patch
from handtools.tools.editing.hunk_placement import HunkMisfit, PatchedText, apply_hunks
from handtools.tools.editing.patch_parser import parse_patch
from tests.fuzz.drawn_values import texts_of

CODEX = "*** Begin Patch\n*** Update File: a.py\n@@ def f():\n-    x = 1\n+    x = 2\n*** End of File\n*** End Patch\n"
GIT = (
    'diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to "y\\303\\251"\nold mode 100644\n'
    "new mode 100755\n--- a/x\n+++ b/y\n@@ -1,2 +1,2 @@ f\n x\n-y\n\\ No newline at end of file\n+z\n"
)
SEEDS = [
    b"def f():\n    x = 1\n\xff" + CODEX.encode(),
    b"x\ny\xff" + GIT.encode(),
    b"\xff*** Begin Patch\n*** Add File: b\n+x\n*** Delete File: c\n*** Update File: a\n*** Move to: d\n@@\n x\n+y\n",
    b"a\r\nb\r\nc\r\n\xff--- a/f\t2020-01-01\n+++ b/f\n@@ -2 +2,2 @@\n b\n+\n",
    b"x\xff--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n",
]
WORDS = [
    "*** Begin Patch\n", "*** End Patch\n", "*** Update File: ", "*** Add File: ", "*** Delete File: ",
    "*** Move to: ", "*** End of File\n", "@@ -1,2 +1,2 @@", "@@\n", "@@ ", "diff --git a/x b/x\n", "--- a/x\n",
    "+++ b/x\n", "/dev/null", "\\ No newline at end of file\n", "new file mode 100644\n", "rename from ",
    "copy to ", "GIT binary patch\n", "\r\n", "\n+", "\n-", "\n ",
]  # fmt: skip
PARSERS = ["handtools.text"]
FOUND = {
    "a file without a name was patched": b"x\n\xff--- \n+++ b/y\n@@\n x\n+y\n",
    "a line number of thousands of digits ended in ValueError": b"x\n\xff--- a/x\n+++ b/x\n@@ -"
    + b"9" * 5000
    + b" +1 @@\n x\n+y\n",
}


def fuzz(data):
    body, text = texts_of(data, 2)
    try:
        files = parse_patch(text)
    except MalformedPatch as refused:
        assert refused.line >= 1
        return
    for file in files:
        assert file.path
        outcome = apply_hunks(body, file.hunks)
        assert isinstance(outcome, PatchedText | HunkMisfit)
        inverse = invert_patch(file)
        if file.action == "update" and not file.keeps_origin:
            assert invert_patch(inverse) == file
        if isinstance(outcome, PatchedText):
            apply_hunks(outcome.text, inverse.hunks)
