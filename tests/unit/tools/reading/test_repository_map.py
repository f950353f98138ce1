"""Mapping: the definitions that matter most."""

import os
import subprocess
import sys
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from handtools.text.token_estimate import estimate_tokens
from handtools.tools.reading.repository_map import (
    MappedDefinition,
    count_used_names,
    map_that_fits,
    rank_definitions_by_mentions,
    render_map,
)


def define(path, name, line=1):
    return MappedDefinition(path, name, line, f"def {name}():")


def test_what_many_files_mention_comes_before_what_none_does():
    every = [define("a", "lonely_thing"), define("b", "central_thing"), define("c", "local_thing")]
    mentions = {name: count_used_names("central_thing()") for name in "cdef"} | {
        "a": Counter(),
        "b": Counter(),
    }
    assert rank_definitions_by_mentions(every, mentions)[0].name == "central_thing"


def test_a_mention_by_a_file_that_matters_weighs_more():
    every = [define("core", "from_core"), define("edge", "from_edge"), define("hub", "hub_thing")]
    mentions = {name: count_used_names("hub_thing()") for name in ("u1", "u2", "u3", "u4")}
    mentions |= {
        "hub": count_used_names("from_core()"),
        "u5": count_used_names("from_edge()"),
        "core": Counter(),
        "edge": Counter(),
    }
    order = [one.name for one in rank_definitions_by_mentions(every, mentions)]
    assert order.index("from_core") < order.index("from_edge")


def test_a_name_that_a_file_only_mentions_itself_is_no_vote():
    every = [define("a", "busy_thing"), define("b", "other_thing")]
    mentions = {
        "a": Counter({"busy_thing": 99}),
        "b": Counter(),
        "c": count_used_names("import other_thing"),
    }
    assert rank_definitions_by_mentions(every, mentions)[0].name == "other_thing"


def test_prose_and_parameters_are_no_votes_but_calls_types_and_imports_are():
    text = "from core import alpha_one\n# a path and some text\ndef f(name): Store.load(name)\nuse other::thing;\n"
    assert count_used_names(text) == Counter(
        {"from": 1, "core": 1, "import": 1, "alpha_one": 1, "Store": 1, "load": 1}
        | {"use": 1, "other": 1, "thing": 1}
    )


def test_the_map_groups_by_file_in_the_order_of_lines():
    every = [define("b", "second", 9), define("a", "other", 1), define("b", "first", 2)]
    assert render_map(every) == "b\n2\tdef first():\n9\tdef second():\na\n1\tdef other():"


NAMES = st.sampled_from(["alpha_one", "beta_two", "gamma", "delta", "_hidden"])
PATHS = st.sampled_from(["a", "b", "c", "d"])


@given(
    st.lists(st.builds(define, PATHS, NAMES, st.integers(1, 50)), max_size=20),
    st.dictionaries(PATHS, st.dictionaries(NAMES, st.integers(1, 9)).map(Counter)),
    st.randoms(),
)
def test_the_order_depends_on_the_tree_alone(every, mentions, chance):
    mentions = {path: Counter() for path in "abcd"} | mentions
    order = rank_definitions_by_mentions(every, mentions)
    assert sorted(order, key=repr) == sorted(every, key=repr)
    mixed, paths = list(every), list(mentions)
    chance.shuffle(mixed)
    chance.shuffle(paths)
    assert rank_definitions_by_mentions(mixed, {path: mentions[path] for path in paths}) == order


@given(st.lists(st.builds(define, PATHS, NAMES, st.integers(1, 50)), max_size=30), st.integers(0, 300))
def test_the_map_fits_its_tokens_and_one_more_would_not(every, tokens):
    text, count = map_that_fits(every, tokens)
    assert estimate_tokens(text) <= tokens or not count
    if count < len(every):
        assert estimate_tokens(render_map(every[: count + 1])) > tokens


PROGRAM = """
from collections import Counter
from handtools.tools.reading.repository_map import MappedDefinition, rank_definitions_by_mentions, count_used_names
every = [MappedDefinition(f"f{n}", f"name_{n % 7}", 1, "") for n in range(30)]
mentions = {f"f{n}": count_used_names(" ".join(f"name_{k}()" for k in range(n % 5))) for n in range(30)}
print(rank_definitions_by_mentions(every, mentions))
"""


def test_ranking_does_not_change_with_the_hash_seed():
    seeds = ("1", "2", "3")
    shown = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in seeds
    }
    assert len(shown) == 1
