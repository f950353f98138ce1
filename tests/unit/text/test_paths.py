import pytest

from handtools.text.paths import BadPath, similar_names, workspace_relative

ROOT = "/home/me/project"


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("", "."),
        (".", "."),
        ("./", "."),
        ("a", "a"),
        ("./a//b", "a/b"),
        ("a/./b/", "a/b"),
        ("a b/ü.txt", "a b/ü.txt"),
        ("...", "..."),
        ("a..b", "a..b"),
        ("a/~", "a/~"),
        ("a:b", "a:b"),
        (ROOT, "."),
        (f"{ROOT}/", "."),
        (f"{ROOT}/src/a.py", "src/a.py"),
        (f"/{ROOT}//src/./a.py", "src/a.py"),
        (f"file://{ROOT}/a%20b.py", "a b.py"),
        (f"file://localhost{ROOT}/a.py", "a.py"),
        (f"file:{ROOT}/a.py", "a.py"),
        (f"FILE://{ROOT}/%C3%BC.txt", "ü.txt"),
    ],
)
def test_a_path_below_the_root_gets_one_normal_form(path: str, normal: str):
    assert workspace_relative(path, ROOT) == normal


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("..", "goes above"),
        ("../x", "goes above"),
        ("a/../../x", "goes above"),
        ("./..", "goes above"),
        ("a/../b", "`..`"),
        (f"{ROOT}/../project/a", "`..`"),
        (f"file://{ROOT}/%2e%2e/x", "`..`"),
        ("/etc/passwd", "outside"),
        ("/", "outside"),
        ("/home/me/project2/a", "outside"),
        ("/home/me", "outside"),
        ("file:///etc/passwd", "outside"),
        ("file://server/share/a", "another machine"),
        ("~", "home"),
        ("~/x", "home"),
        ("./~/x", "home"),
        (f"{ROOT}/~/x", "home"),
        (f"{ROOT}/C:/x", "drive"),
        (f"{ROOT}/file:/x", "URL"),
        ("~root/x", "home"),
        ("a\0b", "control"),
        ("a\nb", "control"),
        ("a\x7f", "control"),
        ("a\x85", "control"),
        (f"file://{ROOT}/a%00b", "control"),
        ("a\ud800", "Unicode"),
        (f"file://{ROOT}/%ff", "Unicode"),
        ("a/" * 2_100, "longer than 4096"),
        ("é" * 128, "longer than 255"),
        ("C:\\Users\\me", "drive"),
        ("c:/Users/me", "drive"),
        ("C:", "drive"),
        ("\\\\server\\share", "network"),
        ("src\\a.py", "backslash"),
    ],
)
def test_a_path_that_leads_elsewhere_is_refused_with_the_reason(path: str, reason: str):
    with pytest.raises(BadPath) as caught:
        workspace_relative(path, ROOT)
    assert reason in caught.value.reason
    assert caught.value.path == path
    assert caught.value.hint


def test_the_refusal_tells_what_to_write_instead():
    with pytest.raises(BadPath, match=r"Use forward slashes: `src/a\.py`"):
        workspace_relative("src\\a.py", ROOT)
    with pytest.raises(BadPath, match="Write it without: `b/c`"):
        workspace_relative("a/../b/c", ROOT)


def test_a_refusal_stays_short_for_an_endless_path():
    with pytest.raises(BadPath) as caught:
        workspace_relative("x" * 1_000_000, ROOT)
    assert len(str(caught.value)) < 500


def test_the_longest_names_a_file_system_takes_are_taken():
    assert workspace_relative("é" * 127 + "x", ROOT) == "é" * 127 + "x"


def test_everything_is_below_the_root_of_the_machine():
    assert workspace_relative("/etc/passwd", "/") == "etc/passwd"


def test_a_relative_root_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="not absolute"):
        workspace_relative("/a", "project")


NAMES = ["README.md", "src/main.py", "src/util/text.py", "tests/text.py", "src/config.yaml", ".env"]


def test_the_same_name_in_another_case_comes_first():
    assert similar_names("readme.MD", NAMES)[0] == "README.md"


def test_the_same_path_in_another_case_is_nearer_than_the_same_name_elsewhere():
    assert similar_names("SRC/Main.py", ["lib/Main.py", "src/main.py"]) == ["src/main.py", "lib/Main.py"]
    assert similar_names("x/Main.py", ["a/main.py", "b/Main.py"]) == ["b/Main.py", "a/main.py"]


def test_the_same_base_name_elsewhere_is_near_and_the_nearest_folder_first():
    assert similar_names("src/text.py", NAMES) == ["src/util/text.py", "tests/text.py"]


def test_another_extension_is_near():
    assert similar_names("src/config.yml", NAMES) == ["src/config.yaml"]
    names = ["x/notes.asciidoc", "docs/notes.asciidoc", "docs/notes_of_another_kind.txt"]
    assert similar_names("docs/notes.md", names) == ["docs/notes.asciidoc", "x/notes.asciidoc"]


def test_a_typing_mistake_is_near():
    assert similar_names("src/mian.py", NAMES) == ["src/main.py"]
    assert similar_names("mian.py", NAMES) == ["src/main.py"]


def test_nothing_is_near_something_else():
    assert similar_names("Makefile", NAMES) == []
    assert similar_names("x", []) == []


def test_no_more_names_are_given_than_asked_for():
    assert len(similar_names("a.py", [f"{number}/a.py" for number in range(50)], most=3)) == 3
