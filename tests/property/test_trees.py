"""Trees: putting changes together and taking them apart loses nothing."""

from hypothesis import given
from hypothesis import strategies as st

from handtools.core.changes import (
    BackupRef,
    Change,
    FolderItem,
    Node,
    change_apply_order,
    combine_folder_changes,
    pack_folder,
    paths_in_moved_folders,
    sha256_hex,
    split_folder_change,
    unpack_folder,
)

NAMES = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=()), min_size=1, max_size=4
).filter(lambda name: name not in {".", ".."})
LEAVES = st.builds(
    FolderItem,
    st.lists(NAMES, min_size=1, max_size=3).map("/".join),
    st.sampled_from(["file", "link", "folder"]),
    st.integers(0, 0o777),
    st.text(max_size=5),
    st.integers(0, 1 << 40),
)


@given(st.lists(LEAVES, max_size=8, unique_by=lambda leaf: leaf.path))
def test_unpack_is_the_inverse_of_pack_and_order_does_not_matter(leaves):
    assert sorted(unpack_folder(pack_folder(leaves)), key=lambda leaf: leaf.path) == sorted(
        leaves, key=lambda leaf: leaf.path
    )
    assert pack_folder(leaves) == pack_folder(leaves[::-1])


def nested(paths):
    """The changes of files that come, with the folders above them."""
    changes = {}
    for path in paths:
        parts = path.split("/")
        if any("/".join(parts[:depth]) in paths for depth in range(1, len(parts))):
            continue
        for depth in range(1, len(parts)):
            above = "/".join(parts[:depth])
            changes[above] = Change(above, None, Node("folder", mode=0o755))
        held = BackupRef(f"item/upper/{path}", sha256_hex(path.encode("utf-8", "surrogatepass")), len(path))
        changes[path] = Change(path, None, Node("file", b"", 0o644, held))
    return sorted(changes.values(), key=change_apply_order)


PATHS = st.sets(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4).map("/".join), max_size=12)


@given(PATHS, st.integers(0, 3), st.booleans())
def test_folded_changes_unfold_to_the_same_changes(paths, whole, gone):
    changes = nested(paths)
    if gone:
        changes = sorted((change.inverse for change in changes), key=change_apply_order)
    together = combine_folder_changes(changes, whole=whole)
    apart = [part for change in together for part in split_folder_change(change)]
    assert {change.path: change for change in apart} == {change.path: change for change in changes}


@given(PATHS, st.integers(0, 3))
def test_folding_hides_no_path_from_a_rule(paths, whole):
    changes = nested(paths)
    shown = {
        path
        for change in combine_folder_changes(changes, whole=whole)
        for path in (change.path, *paths_in_moved_folders(change))
    }
    assert shown == {change.path for change in changes}


@given(PATHS, st.integers(0, 3), st.data())
def test_a_folder_with_something_apart_stays_in_pieces(paths, whole, data):
    changes = nested(paths)
    if not changes:
        return
    apart = data.draw(st.sampled_from(changes)).path + "/refused"
    together = combine_folder_changes(changes, whole=whole, apart=[apart])
    assert not any(
        apart.startswith(f"{change.path}/")
        for change in together
        if change.after.held and change.after.kind == "folder"
    )
