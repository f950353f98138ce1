"""Listings: entries in columns."""

from handtools.core.search import FolderEntry, FolderListing, FolderTree

ENTRIES = [
    FolderEntry("a", "folder"),
    FolderEntry("a.py", "file", 3),
    FolderEntry("b", "link", 5),
    FolderEntry("c", "other"),
]


def test_a_listing_gives_back_the_entries_it_was_made_of():
    listing = FolderListing.of(ENTRIES)
    assert list(listing) == ENTRIES
    assert listing.paths == ("a/", "a.py", "b", "c")
    assert len(listing) == len(ENTRIES)
    assert not FolderListing.of([])


def test_parts_of_a_listing_keep_what_belongs_together():
    listing = FolderListing.of(ENTRIES)
    assert list(listing.first(2)) == ENTRIES[:2]
    assert listing.first(9) is listing
    assert list(listing.select_indexes([2, 0])) == [ENTRIES[2], ENTRIES[0]]


def test_a_tree_shows_upper_levels_first():
    below = {"a": FolderListing.of([FolderEntry("a/x", "file", 1)])}
    assert list(FolderTree(FolderListing.of(ENTRIES), below).every) == [
        *ENTRIES,
        FolderEntry("a/x", "file", 1),
    ]
