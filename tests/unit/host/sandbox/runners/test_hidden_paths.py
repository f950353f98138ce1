"""Masks over private paths."""

import pytest

from handtools.core.errors import HostError
from handtools.host.sandbox.runners.bubblewrap_args import MaskedPaths
from handtools.host.sandbox.runners.hidden_paths import limit_masks


def test_more_private_files_than_can_be_covered_hide_their_folder_whole():
    files = ("/w/.env", *(f"/w/keys/{number}.pem" for number in range(9)), "/w/a/x.pem", "/w/a/y.pem")
    fitting, notes = limit_masks(MaskedPaths(files, ("/w/keys/.ssh", "/w/.aws")), "/w", most=6)
    assert fitting == MaskedPaths(("/w/.env", "/w/a/x.pem", "/w/a/y.pem"), ("/w/.aws", "/w/keys"))
    assert notes == ("All of `keys` is hidden from it: it has too many private files.",)
    assert limit_masks(MaskedPaths(files), "/w", most=99) == (MaskedPaths(files), ())


def test_a_workspace_that_is_full_of_private_files_itself_runs_nothing_rather_than_show_them():
    with pytest.raises(HostError, match="private paths"):
        limit_masks(MaskedPaths(tuple(f"/w/{number}.pem" for number in range(9))), "/w", most=5)
