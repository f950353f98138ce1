"""Every input that was kept or once failed, through its parser again: without a fuzzer, in seconds."""

import pytest

from tests.fuzz.fuzz_targets import FOLDER, load_target, run_input, target_names
from tests.fuzz.kept_corpus import read_corpus


@pytest.mark.parametrize("name", target_names())
def test_every_kept_input_holds(name):
    target = load_target(name)
    for data in [*target.SEEDS, *target.FOUND.values(), *read_corpus(name)]:
        run_input(target, data)


def test_the_kept_inputs_are_small():
    assert sum(file.stat().st_size for file in (FOLDER / "corpus").iterdir()) < 1 << 20
