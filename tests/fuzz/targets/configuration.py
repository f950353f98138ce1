"""Configuration files: settings and a policy, or a refusal that names its line."""

from handtools.configuration import configuration_of_user_files, policy_of_config_file
from handtools.configuration.schema import BadConfigFile, ConfigFile, parse_config_file
from handtools.text.toml_parsing import toml_key_lines

SEEDS = [
    b'runner = "bubblewrap"\nreadable = ["/opt"]\n[limits]\nmemory = "2G"\n[[rule]]\nname = "x"\nverdict = "ask"\n',
    b'[defaults]\ntimeout = 5\n[notify]\ncommand = ["x"]\n[[rule]]\nname = "a"\nverdict = "deny"\npaths = ["*.py"]\n',
    b'a.b."c d" = {x = 1, y = [1, 2, {z = 3}]}\n[t]\n[[t.u]]\n"k" = """\nx\n"""\n',
]
WORDS = [
    *ConfigFile.model_fields,
    "[[rule]]\n",
    "name = ",
    "verdict = ",
    "[limits]\n",
    '"""',
    "'''",
    " = ",
    "{",
    "[",
]
PARSERS = ["handtools.configuration", "handtools.text.toml_parsing"]
FOUND = {
    "a size of hundreds of digits ended in OverflowError": b'[limits]\nmemory = "' + b"9" * 400 + b'G"',
}


def fuzz(data):
    text = data.decode("utf-8", "replace")  # a file that is no UTF-8 is refused before, or read so
    for line in toml_key_lines(text).values():
        assert 1 <= line <= text.count("\n") + 1
    for table in ((), ("tool", "handtools")):
        try:
            values, keys = parse_config_file(text, "f", table=table)
        except BadConfigFile as refused:
            assert all(problem.line >= 0 and str(problem) for problem in refused.problems)
            continue
        assert keys <= set(ConfigFile.model_fields)
        policy_of_config_file(values)
    configuration_of_user_files([])
