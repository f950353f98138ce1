"""A site that does everything wrong, and a process that fetches from it and stays small."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.web.site import LARGE, PATHS, serving

ROOT = Path(__file__).parents[3]
MEMORY_KB = 100_000
GUIDE = "# Guide – Übersicht"
EXPECTED = [
    ("/", "ok", GUIDE),
    ("/large", "too_large", "has 6,000,000 bytes"),
    ("/large-unsaid", "too_large", "sent more than 5,000,000 bytes"),
    ("/endless", "too_large", "sent more than 5,000,000 bytes"),
    ("/endless-chunks", "too_large", "sent more than 5,000,000 bytes"),
    ("/drip", "timeout", "no complete response within 2 s"),
    ("/silent", "timeout", "sent no data for 1 s"),
    ("/gzip", "ok", GUIDE),
    ("/gzip-bomb", "too_large", "decompresses to more than 5,000,000 bytes"),
    ("/gzip-twice-bomb", "too_large", "decompresses to more than 5,000,000 bytes"),
    ("/deflate", "ok", GUIDE),
    ("/deflate-raw", "ok", GUIDE),
    ("/deflate-bomb", "too_large", "decompresses to more than 5,000,000 bytes"),
    ("/brotli", "ok", GUIDE),
    ("/brotli-bomb", "too_large", "decompresses to more than 5,000,000 bytes"),
    ("/zstd", "ok", GUIDE),
    ("/zstd-bomb", "too_large", "decompresses to more than 5,000,000 bytes"),
    ("/gzip-cut", "unreachable", "The response is incomplete: "),
    ("/brotli-cut", "unreachable", "The response is incomplete: "),
    ("/zstd-cut", "unreachable", "The response is incomplete: "),
    ("/cut-short", "unreachable", "closed the connection early: 61 of 5,000 bytes arrived"),
    ("/cut-chunks", "unreachable", "closed the connection early: 61 bytes arrived"),
    ("/broken-gzip", "unreachable", "Can't decompress the response"),
    ("/unknown-packing", "unreachable", "lzma"),
    ("/circle", "unreachable", "redirects in a loop"),
    ("/circle-back", "unreachable", "redirects in a loop"),
    ("/itself", "unreachable", "redirects in a loop"),
    ("/deeper/", "unreachable", "Too many redirects"),
    ("/charset", "ok", "# Grüße\n\nÜbermäßig"),
    ("/charset-other", "ok", "# Grüße"),
    ("/challenge", "ok", GUIDE),
    ("/challenge-always", "unreachable", "returned 403"),
    ("/etag", "ok", GUIDE),
    ("/etag", "ok", GUIDE),
    ("/modified", "ok", GUIDE),
    ("/modified", "ok", GUIDE),
    ("/lasting", "ok", GUIDE),
    ("/lasting", "ok", GUIDE),
    ("/no-store", "ok", GUIDE),
    ("/no-store", "ok", GUIDE),
    ("/many-headers", "unreachable", "Can't reach"),
    ("/nowhere", "not_found", "404"),
    ("/429", "throttled", "Try again in 17 s."),
    ("/", "throttled", "is rate-limiting us"),
]
"""In this order: after the 429 the site is left alone."""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What came of each visit, what the site noticed, and the most memory that the process ever took."""
    state = tmp_path_factory.mktemp("state")
    with serving() as site:
        paths = [path for path, _, _ in EXPECTED]
        line = [sys.executable, "-m", "tests.e2e.web.visitor", str(state), str(site.port), *paths]
        ran = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
        assert ran.returncode == 0, ran.stderr
        yield json.loads(ran.stdout), site.log


def test_every_path_of_the_site_is_visited():
    assert set(PATHS) - {"/largest"} <= {path for path, _, _ in EXPECTED}


@pytest.mark.parametrize("number", range(len(EXPECTED)), ids=[path for path, _, _ in EXPECTED])
def test_each_is_handled_as_it_should_be(told, number):
    path, code, said = EXPECTED[number]
    visit = told[0]["visits"][number]
    assert (visit["path"], visit["code"]) == (path, code), visit["text"]
    assert said in visit["text"]
    assert bool(visit["hint"]) == (code != "ok")
    assert visit["seconds"] < 40


def test_the_process_stays_small(told):
    print(f"most memory: {told[0]['peak_kb']:,} kB")
    assert told[0]["peak_kb"] < MEMORY_KB


def test_a_length_that_is_too_large_is_refused_before_a_byte_of_the_body(told):
    assert told[1].sent.get("/large", 0) == 0
    assert told[1].sent["/large-unsaid"] <= LARGE


def test_a_challenge_is_answered_once_under_our_plain_name(told):
    asked = [
        agent
        for path, agent in zip(told[1].asked, told[1].agents, strict=True)
        if path == "/challenge-always"
    ]
    assert len(asked) == 2
    assert "Mozilla" in asked[0]
    assert asked[1] == "handtools"


def test_the_server_is_told_which_form_is_wanted(told):
    assert set(told[1].accepts) == {
        "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.1"
    }


def test_pages_are_asked_for_again_as_their_servers_want_it(told):
    log = told[1]
    assert log.conditions == ["", '"one"', "", "Sat, 14 Nov 2026 10:00:00 GMT"]
    assert [log.asked.count(path) for path in ("/etag", "/lasting", "/no-store")] == [2, 1, 2]
    kept = {path for visit in told[0]["visits"] if visit["kept"] for path in [visit["path"]]}
    assert kept == {"/etag", "/modified", "/lasting"}


def test_a_site_that_wants_us_to_wait_is_left_alone(told):
    assert told[1].asked[-1] == "/429"
