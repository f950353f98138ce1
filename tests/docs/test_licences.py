"""Every package of the lock has a licence that we allow, and the page says which."""

import pytest
from packaging.utils import canonicalize_name

from tests.docs.licences import FOR_DEVELOPMENT, FOR_USERS, PAGE, comes_with, is_allowed, locked, with_table


def test_every_licence_is_on_the_allow_list():
    refused = [f"{each.name}: {each.licence}" for each in locked() if not each.allowed]
    assert not refused


def test_the_table_is_current():
    page = PAGE.read_text("utf-8")
    assert page == with_table(page), "run `just docs`"


@pytest.mark.parametrize(
    ("licence", "users", "development"),
    [
        ("MIT", True, True),
        ("Unlicense OR MIT", True, True),
        ("GPL-3.0-only OR MIT", True, True),
        ("BSD-3-Clause AND Apache-2.0", True, True),
        ("MIT AND GPL-3.0-only", False, False),
        ("LGPL-3.0-only", False, True),
        ("AGPL-3.0-only", False, False),
        ("none stated", False, False),
    ],
)
def test_a_licence_is_allowed_for_some_or_refused(licence, users, development):
    assert is_allowed(licence, FOR_USERS) is users
    assert is_allowed(licence, FOR_DEVELOPMENT) is development


def test_what_users_get_is_told_from_what_only_we_use():
    brought = comes_with()
    assert brought["pydantic-core"] == {"slim"}
    assert brought["certifi"] == {"container"}
    assert "cryptography" in brought
    assert "pytest" not in brought
    assert canonicalize_name("python-telegram-bot") not in brought
