"""Line endings that .gitattributes and .editorconfig set."""

import pytest

from handtools.text.line_end_settings import (
    is_root_editorconfig,
    line_end_of_editorconfig,
    line_end_of_git_attributes,
)


@pytest.mark.parametrize(
    ("text", "path", "end"),
    [
        ("*.bat text eol=crlf\n", "a.bat", "\r\n"),
        ("*.bat text eol=crlf\n", "deep/er/a.bat", "\r\n"),
        ("*.bat text eol=crlf\n", "a.sh", None),
        ("# *.bat eol=crlf\n*.bat text\n", "a.bat", None),
        ("* eol=crlf\n*.sh eol=lf\n", "a.sh", "\n"),
        ("* eol=crlf\n*.sh !eol\n", "a.sh", None),
        ("/win/* eol=crlf\n", "win/a", "\r\n"),
        ("/win/* eol=crlf\n", "a", None),
        ("[ eol=crlf\n", "a", None),
        ("", "a", None),
    ],
)
def test_the_last_matching_line_of_git_attributes_decides(text, path, end):
    assert line_end_of_git_attributes(text, path) == end


@pytest.mark.parametrize(
    ("text", "path", "end"),
    [
        ("root = true\n\n[*]\nend_of_line = crlf\n", "a/b.txt", "\r\n"),
        ("[*]\nend_of_line = crlf\n[*.{py,sh}]\nend_of_line = LF\n", "a.sh", "\n"),
        ("[*.{py,sh}]\nend_of_line=crlf\n", "a.txt", None),
        ("[*]\nend_of_line = unset\n", "a", None),
        ("end_of_line = crlf\n", "a", None),
        ("[docs/**]\nend_of_line = cr\n", "docs/x/y", "\r"),
    ],
)
def test_the_last_matching_section_of_editorconfig_decides(text, path, end):
    assert line_end_of_editorconfig(text, path) == end


def test_root_counts_only_above_the_first_section():
    assert is_root_editorconfig("# top\nroot = True\n[*]\n")
    assert not is_root_editorconfig("[*]\nroot = true\n")
    assert not is_root_editorconfig("")
