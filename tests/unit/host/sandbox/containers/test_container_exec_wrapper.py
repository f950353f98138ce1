"""The wrapper, run as it is: by the bash of this machine."""

import subprocess

import pytest

from handtools.host.sandbox.containers.container_exec import mask_check_script, wrapped_argv
from handtools.host.sandbox.containers.container_pool import ContainerSpec


def shape(**facts) -> ContainerSpec:
    return ContainerSpec(image="any", root="/work", user=(5001, 5001), **facts)


def checked(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=False)


def test_nothing_to_check_needs_no_check():
    assert mask_check_script(shape(), "word") == ""


@pytest.mark.parametrize("name", ["plain", "with space", "it's", "$(touch made)", "-n"])
def test_an_open_private_file_stops_it_and_a_covered_one_does_not(tmp_path, name):
    path = tmp_path / name
    gone = mask_check_script(shape(private_files=(str(path),)), "word")
    assert checked(gone).returncode == 0
    path.write_text("secret")
    done = checked(gone)
    assert (done.returncode, done.stderr, done.stdout) == (1, "word", "")
    assert not (tmp_path / "made").exists()


def test_a_protected_folder_that_can_be_written_stops_it(tmp_path):
    assert checked(mask_check_script(shape(read_only=(str(tmp_path),)), "word")).stderr == "word"


def test_descriptors_limits_and_terminal_are_in_the_wrapper_and_the_command_is_not():
    argv = wrapped_argv(
        ["bash", "-c", "rm -rf $HOME"],
        {7: "abc"},
        checks="",
        limits={"RLIMIT_CORE": 0, "RLIMIT_FSIZE": 4096},
        terminal=(24, 80),
    )
    text = argv[argv.index("-c") + 1]
    assert "exec 7<>/run/handtools/abc" in text
    assert "ulimit -f 4" in text
    assert "stty rows 24 cols 80" in text
    assert "HOME" not in text
    assert argv[-3:] == ["bash", "-c", "rm -rf $HOME"]
