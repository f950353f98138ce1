"""Words of a script that may name files which it runs."""

import pytest

from handtools.runtime.approval.named_files import words_that_may_name_programs
from handtools.text.shell import read_script


@pytest.mark.parametrize(
    ("script", "named"),
    [
        ("sh s.sh", "s.sh"),
        ('sh "$PWD/s.sh"', "s.sh"),
        ("sh src/../s.sh", "s.sh"),
        ("cd tools && ./run", "run"),
        ("python3 -m x; bash <deep/setup.sh", "deep/setup.sh"),
        ("make -j4 all", "Makefile"),
        ("env A=1 npm test", "package.json"),
    ],
)
def test_the_file_that_runs_is_among_the_words(script, named):
    assert named in words_that_may_name_programs(read_script(script))


@pytest.mark.parametrize("script", ["cat s.sh", "ls -la; grep -r x src | head"])
def test_a_script_that_only_looks_names_nothing(script):
    assert words_that_may_name_programs(read_script(script)) == ()
