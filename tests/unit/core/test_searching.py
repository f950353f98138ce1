"""Listings: entries in columns."""

from handtools.core.searching import Entry, Listing, Tree

ENTRIES = [Entry("a", "folder"), Entry("a.py", "file", 3), Entry("b", "link", 5), Entry("c", "other")]


def test_a_listing_gives_back_the_entries_it_was_made_of():
    listing = Listing.of(ENTRIES)
    assert list(listing) == ENTRIES
    assert listing.paths == ("a/", "a.py", "b", "c")
    assert len(listing) == len(ENTRIES)
    assert not Listing.of([])


def test_parts_of_a_listing_keep_what_belongs_together():
    listing = Listing.of(ENTRIES)
    assert list(listing.first(2)) == ENTRIES[:2]
    assert listing.first(9) is listing
    assert list(listing.picked([2, 0])) == [ENTRIES[2], ENTRIES[0]]


def test_a_tree_shows_upper_levels_first():
    below = {"a": Listing.of([Entry("a/x", "file", 1)])}
    assert list(Tree(Listing.of(ENTRIES), below).every) == [*ENTRIES, Entry("a/x", "file", 1)]
