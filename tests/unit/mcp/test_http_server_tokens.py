"""Tokens, and what they open."""

import pytest

from handtools import UsageError
from handtools.mcp.http_access import token_digest
from handtools.mcp.http_server import HttpConfig, TokenGrants, read_grants

TOKEN = "a-token-of-more-than-24-chars"


def written(tmp_path, text):
    file = tmp_path / "tokens.toml"
    file.write_text(text)
    return file


def test_a_file_of_tokens_is_read_with_paths_beside_it(tmp_path):
    (tmp_path / "b.token").write_text(TOKEN + "\n")
    grants = read_grants(
        written(
            tmp_path,
            f'[[token]]\nname = "a"\nsha256 = "{token_digest("x").upper()}"\nworkspace = "one"\n'
            'preset = "reading"\nblock = ["bash"]\nasks = "person"\n'
            '[[token]]\nname = "b"\ntoken_file = "b.token"\nworkspace = "/two"\n',
        )
    )
    assert grants.find("x").name == "a"
    assert grants.find("x").workspace == tmp_path / "one"
    assert grants.find("x").block == ("bash",)
    assert grants.find(TOKEN).name == "b"
    assert grants.find("") is None
    assert grants.find("X") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no \\[\\[token\\]\\] table"),
        ("x = ", "Can't read"),
        ('[[token]]\nname = "a"\n', "needs a name and a workspace"),
        ('[[token]]\nname = "a"\nworkspace = "."\n', "needs a sha256"),
        ('[[token]]\nname = "a"\nworkspace = "."\nsha256 = "ab"\n', "needs a sha256"),
        ('[[token]]\nname = "a"\nworkspace = "."\npasword = "x"\n', "unknown keys: pasword"),
        ('[[token]]\nname = "a"\nworkspace = "."\ntoken_file = "none"\n', "Can't read"),
        (
            f'[[token]]\nname = "a"\nworkspace = "."\nsha256 = "{token_digest("x")}"\nasks = "me"\n',
            "`asks` must be one of",
        ),
    ],
)
def test_a_file_that_is_wrong_says_where(tmp_path, text, said):
    with pytest.raises(UsageError, match=said):
        read_grants(written(tmp_path, text))


def test_a_short_token_is_refused(tmp_path):
    (tmp_path / "t").write_text("short")
    with pytest.raises(UsageError, match="too short"):
        read_grants(written(tmp_path, '[[token]]\nname = "a"\nworkspace = "."\ntoken_file = "t"\n'))


def test_a_server_without_tokens_or_with_the_same_twice_does_not_start(tmp_path):
    with pytest.raises(UsageError):
        TokenGrants([])
    same = f'[[token]]\nname = "a"\nworkspace = "."\nsha256 = "{token_digest("x")}"\n'
    with pytest.raises(UsageError, match="same name"):
        read_grants(written(tmp_path, same * 2))


def test_beyond_this_machine_the_names_must_be_said():
    assert "localhost" in HttpConfig().hosts
    with pytest.raises(UsageError, match="--allow-host"):
        _ = HttpConfig(host="0.0.0.0").hosts
    assert HttpConfig(host="0.0.0.0", names=("Tools.Example",)).hosts == {"tools.example"}
