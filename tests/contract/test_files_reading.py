"""The contract of HostFiles: looking."""

import pytest

from handtools.core.changes import Change, Node
from handtools.core.errors import InvalidInput, NotFound, OutsideWorkspace, SymlinkInPath, WrongKind

TREE = {
    "a.txt": b"hello",
    "src/b.py": b"print()",
    "src/deep/c.py": b"",
    "empty": Node("folder"),
    "to_file": Node("link", b"src/b.py"),
    "to_folder": Node("link", b"src"),
    "src/up": Node("link", b"../a.txt"),
    "chain": Node("link", b"to_folder/up"),
    "dangling": Node("link", b"src/missing.py"),
    "dangling_deep": Node("link", b"new/folder/file"),
    "out": Node("link", b"../outside.txt"),
    "out_absolute": Node("link", b"/etc/passwd"),
    "loop": Node("link", b"loop"),
    "loop_one": Node("link", b"loop_two"),
    "loop_two": Node("link", b"loop_one"),
}


@pytest.fixture
def files(make_files):
    return make_files(TREE)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.txt", b"hello"),
        ("./a.txt", b"hello"),
        ("src//b.py", b"print()"),
        ("src/deep/c.py", b""),
        ("to_file", b"print()"),
        ("to_folder/b.py", b"print()"),
        ("src/up", b"hello"),
        ("chain", b"hello"),
    ],
)
def test_a_file_is_read_whole_where_its_path_leads(files, path, content):
    assert files.read(files.locate(path)) == content


LINKED = ["to_file", "to_folder", "to_folder/b.py", "src/up", "chain", "dangling", "out", "out/x", "loop"]


@pytest.mark.parametrize("path", LINKED)
def test_only_locating_goes_through_links(files, path):
    for look in (files.read, files.facts, files.names):
        with pytest.raises(SymlinkInPath):
            look(path)


def test_a_node_behind_a_linked_folder_is_refused_too(files):
    with pytest.raises(SymlinkInPath):
        files.node("to_folder/b.py")


def test_a_link_in_the_place_of_what_was_located_is_refused(make_files):
    """Between judging and opening: the path is good, and what is behind it is no longer."""
    files = make_files({"pub": b"public", ".env": b"SECRET", "d/f": b"x", ".ssh/f": b"SECRET"})
    located = [files.locate("pub"), files.locate("d/f")]
    swap(files, "pub", b".env")
    files.perform(files.plan([Change.of("d/f", before=b"x", after=None)]))
    swap(files, "d", b".ssh")
    for path in located:
        for look in (files.read, files.facts):
            with pytest.raises(SymlinkInPath):
                look(path)
    assert [files.locate(path) for path in located] == [".env", ".ssh/f"]


def swap(files, path, target):
    """Put a link where something else is."""
    now = files.node(path)
    files.perform(files.plan([Change(path, now, Node("link", target))]))


def test_an_absolute_path_below_the_root_is_read(files, absolute):
    assert files.read(f"{absolute}/src/b.py") == b"print()"


def test_an_absolute_link_that_stays_inside_is_followed(make_files, absolute):
    files = make_files({"a": b"x", "link": Node("link", f"{absolute}/a".encode())})
    assert files.locate("link") == "a"
    assert files.read("a") == b"x"


@pytest.mark.parametrize(
    ("start", "size", "content"),
    [
        (0, 2, b"he"),
        (1, 3, b"ell"),
        (3, None, b"lo"),
        (3, 99, b"lo"),
        (5, 1, b""),
        (99, None, b""),
        (0, 0, b""),
    ],
)
def test_a_part_of_a_file_is_read(files, start, size, content):
    assert files.read("a.txt", start=start, size=size) == content


@pytest.mark.parametrize(("start", "size"), [(-1, None), (0, -1)])
def test_a_part_that_makes_no_sense_is_refused(files, start, size):
    with pytest.raises(InvalidInput):
        files.read("a.txt", start=start, size=size)


@pytest.mark.parametrize("path", ["nothing", "nowhere/at/all", "a.txt/below"])
def test_what_is_not_there_is_not_found(files, path):
    with pytest.raises(NotFound):
        files.read(path)
    assert files.facts(path) is None
    with pytest.raises(NotFound):
        files.names(path)


@pytest.mark.parametrize("path", ["src", "empty", "."])
def test_a_folder_is_not_read_as_a_file(files, path):
    with pytest.raises(WrongKind):
        files.read(path)


@pytest.mark.parametrize("path", ["../outside.txt", "/etc/passwd"])
def test_what_is_outside_is_refused(files, path):
    for look in (files.read, files.facts, files.names, files.locate):
        with pytest.raises(OutsideWorkspace):
            look(path)


@pytest.mark.parametrize("path", ["out", "out/x", "out_absolute", "loop", "loop_one"])
def test_what_leads_outside_is_not_located(files, path):
    with pytest.raises(OutsideWorkspace):
        files.locate(path)


def test_facts_tell_kind_size_and_mode(files):
    facts = files.facts("src/b.py")
    assert (facts.path, facts.kind, facts.bytes, facts.mode) == ("src/b.py", "file", 7, 0o644)
    folder = files.facts("src")
    assert (folder.path, folder.kind, folder.bytes, folder.mode) == ("src", "folder", 0, 0o755)
    assert files.facts(".").path == "."


def test_names_are_sorted_paths_and_links_are_told_as_links(files):
    found = [(facts.path, facts.kind) for facts in files.names("src")]
    assert found == [("src/b.py", "file"), ("src/deep", "folder"), ("src/up", "link")]
    assert "a.txt" in [facts.path for facts in files.names(".")]
    assert files.names("empty") == []


def test_names_of_a_file_are_refused(files):
    with pytest.raises(WrongKind):
        files.names("a.txt")


def test_a_node_is_what_is_at_the_path_itself(files):
    assert files.node("a.txt") == Node("file", b"hello", 0o644)
    assert files.node("to_file") == Node("link", b"src/b.py")
    assert files.node("out") == Node("link", b"../outside.txt")
    assert files.node("src") == Node("folder", mode=0o755)
    assert files.node("nothing") is None
    assert files.node("nowhere/at/all") is None


@pytest.mark.parametrize(
    ("path", "located"),
    [
        ("a.txt", "a.txt"),
        ("./src/./new.txt", "src/new.txt"),
        ("to_file", "src/b.py"),
        ("to_folder/b.py", "src/b.py"),
        ("to_folder", "src"),
        ("chain", "a.txt"),
        ("src/up", "a.txt"),
        ("dangling", "src/missing.py"),
        ("dangling_deep", "new/folder/file"),
        ("to_folder/new/file", "src/new/file"),
        ("brand/new/file", "brand/new/file"),
        (".", "."),
    ],
)
def test_locating_resolves_links_whether_or_not_anything_is_there(files, path, located):
    assert files.locate(path) == located


def test_every_located_path_is_taken_back(make_files):
    files = make_files({"~odd": b"1", "a b\\c": b"2", "new\nline": b"3", "~ähnlich": b"4"})
    for facts in files.names("."):
        assert files.node(facts.path) is not None
        assert files.read(facts.path) in {b"1", b"2", b"3", b"4"}
