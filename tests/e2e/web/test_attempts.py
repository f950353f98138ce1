"""Attempts to reach this machine, its neighbours and other ports, against real servers and a real name server."""

import tomllib

import pytest

from tests.e2e.web.attempts import CASES, PUBLIC, apart, astray, missing, told

pytestmark = pytest.mark.skipif(
    bool(missing()), reason=f"no machine apart ({' '.join(apart())}): {missing()}"
)

ATTEMPTS = tomllib.loads(CASES.read_text())["attempt"]


def seen(number: int) -> dict:
    return told()["attempts"][number]


@pytest.fixture(scope="module", params=range(len(ATTEMPTS)), ids=lambda number: ATTEMPTS[number]["to"])
def attempt(request) -> dict:
    return seen(request.param)


def test_there_are_enough_attempts_and_each_is_another():
    assert len({case["to"] for case in ATTEMPTS}) == len(ATTEMPTS) >= 60


def test_no_attempt_reaches_what_it_must_not(attempt):
    assert astray(attempt) == []
    wanted = "ok" if attempt["answers"] == "public" else {"denied", "error"}
    assert attempt["closed"]["status"] in wanted, attempt["closed"]["text"]


def test_the_same_address_is_a_page_once_a_person_has_listed_it(attempt):
    status = attempt["open"]["status"]
    if attempt["opens"]:
        assert status == "ok", attempt["open"]["text"]
        assert "reached " in attempt["open"]["text"]
    else:
        assert (status == "ok") == (attempt["answers"] == "public")


def test_the_servers_are_really_there():
    places = {place for each in told()["attempts"] for place in each["open"]["reached"]} - {PUBLIC}
    addresses = {place.split()[0] for place in places}
    assert {
        "127.0.0.1",
        "::1",
        "10.1.2.3",
        "169.254.169.254",
        "fd00:ec2::254",
        "64:ff9b::7f00:1",
    } <= addresses
    assert {place.split()[1] for place in places} >= {"22", "80", "6379", "8080"}


def test_a_client_that_looks_first_and_connects_by_name_is_led_astray():
    assert told()["naive"] == ["127.0.0.1 80", "10.1.2.3 80"]
