"""Pages that are kept, and for how long they will do."""

import pytest

from handtools.core.web import WebRequest
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.host.web.page_cache import MAX_FRESH_SECONDS, PAGE_REREAD_SECONDS, CachedPage, PageCache
from handtools.text.web.url import parse_url

REQUEST = WebRequest(url=parse_url("https://docs.example/A"))
PAGE = CachedPage(
    url="https://docs.example/A", media_type="text/html", charset="utf-8", etag='"1"', data=b"a\nb"
)


TIME = [0.0]


@pytest.fixture
def pages(tmp_path):
    TIME[0] = 1_000.0
    return PageCache(FolderBlobStore(tmp_path), clock=lambda: TIME[0])


def test_a_page_comes_back_as_it_was(pages):
    assert pages.find_even_if_stale(REQUEST) is None
    pages.store_page(REQUEST, PAGE)
    found = pages.find_even_if_stale(REQUEST)
    assert (found.data, found.etag, found.kept_at) == (b"a\nb", '"1"', 1_000.0)
    assert found.answer(REQUEST.url).kept
    assert found.conditions == {"If-None-Match": '"1"'}


def test_addresses_that_differ_in_case_or_form_are_different_pages(pages):
    pages.store_page(REQUEST, PAGE)
    assert pages.find_even_if_stale(WebRequest(url=parse_url("https://docs.example/a"))) is None
    assert pages.find_even_if_stale(WebRequest(url=REQUEST.url, form="html")) is None


def test_a_newer_page_takes_the_place_of_an_older_one(pages):
    pages.store_page(REQUEST, PAGE)
    pages.store_page(REQUEST, CachedPage(url=PAGE.url, media_type="", charset="", data=b"new"))
    assert pages.find_even_if_stale(REQUEST).data == b"new"
    pages.delete_page(REQUEST)
    assert pages.find_even_if_stale(REQUEST) is None


def test_a_damaged_page_is_none(pages, tmp_path):
    pages.store_page(REQUEST, PAGE)
    [file] = tmp_path.iterdir()
    file.write_bytes(b"{broken")
    assert pages.find_even_if_stale(REQUEST) is None


@pytest.mark.parametrize(
    ("control", "seconds"),
    [
        ("max-age=60", 60),
        ("public, Max-Age=60", 60),
        ("max-age=999999999", MAX_FRESH_SECONDS),
        ("no-cache, max-age=60", None),
        ("", None),
        ("max-age=soon", None),
    ],
)
def test_a_servers_word_holds_as_long_as_it_says(pages, control, seconds):
    assert pages.fresh_until(control) == (0.0 if seconds is None else 1_000.0 + seconds)


def test_a_page_will_do_for_going_on_but_not_for_a_new_look(pages):
    pages.store_page(REQUEST, PAGE)
    kept, again = pages.find_even_if_stale(REQUEST), WebRequest(url=REQUEST.url, kept=True)
    assert not pages.is_usable_without_request(kept, REQUEST)
    assert pages.is_usable_without_request(kept, again)
    TIME[0] = 1_000.0 + PAGE_REREAD_SECONDS + 1
    assert not pages.is_usable_without_request(kept, again)
