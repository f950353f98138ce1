"""Paths on Windows, by its documented rules; `ntpath` is what Python knows of them everywhere."""

import ntpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.host.files.path_resolution import windows_workspace_relative
from handtools.text.paths import BadPath

ROOT = r"C:\Users\me\work"


@pytest.mark.parametrize(
    ("path", "below"),
    [
        ("a.py", "a.py"),
        (r"src\a.py", "src/a.py"),
        ("src/a.py", "src/a.py"),
        (r"C:\Users\me\work\src\a.py", "src/a.py"),
        ("c:/users/ME/Work/src/A.py", "src/A.py"),
        (r"C:\Users\me\work", "."),
        ("file:///C:/Users/me/work/a.py", "a.py"),
        ("console.txt", "console.txt"),
        ("com10", "com10"),
        (".env", ".env"),
    ],
)
def test_a_path_in_the_workspace_is_made_relative(path, below):
    assert windows_workspace_relative(path, ROOT) == below


@pytest.mark.parametrize(
    "path",
    [
        r"D:\Users\me\work\a", r"C:\Users\me\worker\a", r"C:\Users\me", r"C:a.py", r"\a.py", "/a.py",
        r"\\server\share\a", r"\\?\C:\Users\me\work\a", r"\\.\C:", r"..\a", r"a\..\b", r"C:\Users\me\work\..\a",
        "nul", "NUL.txt", r"src\con", "aux.py", "COM1", "lpt³.log", "CONIN$", "a.txt:stream", "a ", "a.", "a./b",
        "what?", "a*", "a|b", "a<b", 'a"b', "~/a", "a\nb",
    ],
)  # fmt: skip
def test_what_windows_takes_for_something_else_is_refused(path):
    with pytest.raises(BadPath):
        windows_workspace_relative(path, ROOT)


def test_a_workspace_can_be_on_a_share():
    share = r"\\server\share\work"
    assert windows_workspace_relative(r"\\SERVER\Share\work\a\b", share) == "a/b"
    assert windows_workspace_relative("a/b", share) == "a/b"
    with pytest.raises(BadPath):
        windows_workspace_relative(r"\\server\other\work\a", share)


def test_a_root_without_a_drive_is_a_mistake_of_the_program():
    with pytest.raises(ValueError, match="not absolute"):
        windows_workspace_relative("a", "work")


NAMES = st.text(st.sampled_from("aB.:/\\ ~cCoOnN1$é"), max_size=12)


@given(
    NAMES,
    st.sampled_from(["", "C:\\", "c:/users/me/WORK/", "C:\\Users\\me\\work\\", "\\\\s\\t\\", "/", "D:"]),
)
def test_whatever_passes_stays_below_the_root_and_passes_again(name, start):
    try:
        below = windows_workspace_relative(start + name, ROOT)
    except BadPath:
        return
    whole = ntpath.normpath(ntpath.join(ROOT, below))
    assert ntpath.commonpath([whole.lower(), ROOT.lower()]) == ROOT.lower()
    assert not ntpath.isabs(below)
    assert ntpath.splitdrive(below)[0] == ""
    assert windows_workspace_relative(below, ROOT) == below
