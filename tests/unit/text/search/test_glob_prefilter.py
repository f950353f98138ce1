"""Screening: what may match is never passed by, and little else is looked at."""

import pytest

from handtools.text.search.glob import GlobPrefilter

GLOBS = [".env", ".env.*", "*.key", "*.keystore", "id_rsa*", "id_ed25519*", "secret/", "settings.py", "a+b"]


@pytest.mark.parametrize(
    "path", ["x/.env", ".ENV.local", "a.key", "b.keystore", "ID_RSA.old", "d/id_ed25519", "secret", "A+B"]
)
def test_a_path_that_holds_what_a_glob_asks_for_is_suspect_among_others(path):
    assert GlobPrefilter(GLOBS).possible_matches(["src/main.py", path, "id_x", ".en"]) == {path}


def test_beginnings_alone_make_nobody_suspect():
    assert not GlobPrefilter(GLOBS).possible_matches([".e", "id_", "set/tings.py", "aab", "keys.py"])
