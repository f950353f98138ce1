from hypothesis import example, given
from hypothesis import strategies as st

from handtools.text.paths import (
    BadPath,
    folders_above,
    inherited_value,
    path_from_printable,
    path_to_printable,
    similar_names,
    workspace_relative,
)

ROOT = "/work/tree"
parts = st.text(st.sampled_from("ab.~ \\:é\n"), max_size=5) | st.sampled_from(
    ["..", ".", "", "work", "tree"]
)
written = st.builds(
    lambda start, names: start + "/".join(names),
    st.sampled_from(["", "/", "./", "../", "~", ROOT, ROOT + "/", "file://", f"file://{ROOT}/", "C:\\"]),
    st.lists(parts, max_size=6),
)


def normal(path: str) -> str | None:
    try:
        return workspace_relative(path, ROOT)
    except BadPath:
        return None


@given(written | st.text())
@example("/work/tree/../tree/x")
@example("/work/treeless/x")
def test_a_path_is_refused_or_stays_below_the_root(path: str):
    result = normal(path)
    if result is not None:
        assert result == "." or not {"", ".", ".."} & set(result.split("/"))
        assert not result.startswith(("/", "~"))
        assert "\\" not in result
        assert len(result.encode()) <= 4096


@given(written | st.text())
@example("./~/x")
def test_what_is_normal_stays_as_it_is(path: str):
    result = normal(path)
    if result is not None:
        assert normal(result) == result
        assert normal(f"{ROOT}/{result}") == result


@given(st.text(min_size=1), st.lists(st.text(), max_size=10), st.integers(1, 5))
def test_near_names_are_some_of_the_names(wanted: str, names: list[str], most: int):
    found = similar_names(wanted, names, most=most)
    assert len(found) <= most
    assert len(set(found)) == len(found)
    assert set(found) <= set(names) - {wanted}


@given(st.text(st.sampled_from("abcd"), min_size=4, max_size=8))
def test_a_name_in_another_folder_or_case_is_always_found(base: str):
    assert similar_names(f"x/{base}.py", [f"y/{base}.py", "other"]) == [f"y/{base}.py"]
    assert similar_names(f"{base}.py".upper(), [f"{base}.py", "other"]) == [f"{base}.py"]


@given(
    st.binary(min_size=1, max_size=30).map(lambda raw: raw.decode("utf-8", "surrogateescape").strip("/"))
)
def test_a_path_of_any_bytes_is_carried_in_print_and_read_again(path):
    assert path_to_printable(path).isprintable()
    assert path_from_printable(path_to_printable(path)) == path


trees = st.lists(st.lists(st.sampled_from("ab"), min_size=1, max_size=5).map("/".join), max_size=6)


@given(trees)
def test_the_folders_above_some_paths_are_those_above_each(paths: list[str]):
    names = [path.split("/") for path in paths]
    assert folders_above(paths) == {"/".join(each[:end]) for each in names for end in range(1, len(each))}


@given(trees)
def test_a_value_is_derived_once_for_each_folder_from_the_one_above(paths: list[str]):
    known, derived = {"": ()}, []

    def derive(above: tuple[str, ...], path: str) -> tuple[str, ...]:
        derived.append(path)
        return (*above, path.rpartition("/")[2])

    assert [inherited_value(path, known, derive) for path in paths] == [
        tuple(path.split("/")) for path in paths
    ]
    assert sorted(derived) == sorted({*paths, *folders_above(paths)})
