"""Skills: read leniently, reported strictly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.core.skills import (
    SKILL_SCHEME,
    nearest_skill_per_name,
    skill_from_frontmatter,
    skill_listing,
)
from handtools.text.frontmatter import parse_frontmatter
from handtools.text.token_estimate import estimate_tokens


def skill(head, name="make-tea", body="", **facts):
    given_facts = {
        "origin": "workspace",
        "folder": f".agents/skills/{name}",
        "location": f"file:///w/{name}",
    }
    return skill_from_frontmatter(
        parse_frontmatter(f"---\n{head}\n---\n{body}"), name, **(given_facts | facts)
    )


def test_a_head_as_the_specification_has_it_is_no_problem():
    found = skill("name: make-tea\ndescription: Makes tea.\nlicense: MIT\nmetadata:\n  version: '1'")
    assert (found.name, found.description, found.problems) == ("make-tea", "Makes tea.", ())
    assert found.file == ".agents/skills/make-tea/SKILL.md"


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ("description: a", "`name` is missing"),
        ("name: Make Tea\ndescription: a", "a-z, 0-9"),
        ("name: make-coffee\ndescription: a", "the folder is `make-tea`"),
        ("name: make-tea", "`description` is missing"),
        ("name: make-tea\ndescription: " + "a" * 1_025, "1,025 characters"),
        ("name: make-tea\ndescription: a\nversion: 1", "`version` is not in the specification"),
        ("name: make-tea\ndescription: a\npaths: '*.py'", "`paths` is supported here"),
        ("name: make-tea\ndescription: a\npaths: '[z-a]'", "is not a valid glob"),
        ("name: make-tea\ndescription: a\npaths: '" + "{a,b}" * 9 + "'", "is not a valid glob"),
        ("name: make-tea\ndescription: a: b", "colon"),
        ("name: make-tea\ndescription: a\ncompatibility: " + "a" * 501, "`compatibility`"),
    ],
)
def test_what_differs_from_the_specification_is_reported(head, problem):
    assert problem in " ".join(skill(head).problems)


def test_what_is_missing_is_taken_from_the_folder_and_the_text():
    found = skill("license: MIT", body="# Tea\n\nHow to\nmake tea.\n\nMore.")
    assert (found.name, found.description) == ("make-tea", "How to make tea.")


def test_a_name_can_not_lead_out_of_its_folder():
    found = skill("name: ../../etc\ndescription: a", origin="user", folder="")
    assert found.folder == f"{SKILL_SCHEME}{found.name}"
    assert "/" not in found.name


@pytest.mark.parametrize(
    "head", ["paths: 'src/**/*.{ts,tsx}, *.css'", "globs: ['src/**/*.{ts,tsx}', '*.css']"]
)
def test_patterns_name_files_as_a_list_or_as_a_text(head):
    found = skill(f"name: a\ndescription: b\n{head}")
    assert found.is_about("src/a/b.tsx")
    assert found.is_about("deep/x.css")
    assert not found.is_about("lib/a.ts")


def test_patterns_of_a_nested_skill_begin_at_its_folder():
    found = skill("name: a\ndescription: b\npaths: src/*.py", scope="packages/one")
    assert found.is_about("packages/one/src/a.py")
    assert not found.is_about("packages/one/tests/a.py")


def test_a_nested_skill_without_patterns_is_about_its_whole_folder_and_one_of_the_root_about_nothing():
    assert skill("name: a\ndescription: b", scope="packages/one").is_about("packages/one/x.py")
    assert not skill("name: a\ndescription: b").is_about("x.py")


def test_an_address_takes_any_name():
    assert skill("name: a").url_of_file("with space/50%.md") == "file:///w/make-tea/with%20space/50%25.md"


def test_a_skill_for_people_alone_is_not_listed_and_not_mentioned():
    found = skill("name: a\ndescription: b\npaths: '*.py'\ndisable-model-invocation: true")
    assert not found.listed
    assert not found.is_about("a.py")
    assert skill_listing([found], 200_000).text == ""


def test_the_nearest_of_a_name_is_the_one_that_is_seen():
    near, far = skill("name: a\ndescription: near"), skill("name: a\ndescription: far")
    assert nearest_skill_per_name([near, far]) == [near]


@given(st.integers(0, 400), st.integers(1_000, 400_000))
def test_the_listing_takes_at_most_two_percent_of_the_context(count, context):
    skills = [
        skill(f"name: skill-{n}\ndescription: {'words and ' * (n % 60)}end", f"skill-{n}")
        for n in range(count)
    ]
    shared = skill_listing(skills, context)
    assert estimate_tokens(shared.text) <= context * 0.02
    assert len(shared.rows) + shared.left_out == count


def test_very_many_patterns_of_a_skill_are_not_all_tried():
    patterns = ", ".join(f"'{n}/**'" for n in range(5_000))
    assert len(skill(f"name: make-tea\ndescription: a\npaths: [{patterns}]").paths) == 64


def test_a_description_moves_no_cursor_and_turns_no_text_around():
    assert skill('name: make-tea\ndescription: "a\\x1b[31m\\u202e b"').description == "a [31m b"
