"""Bash scripts, read without running them: never an error, and never plain where bash finds no script."""

import subprocess
import zlib

from handtools.runtime.approval.gate import always_allow_prefix
from handtools.text.shell import quote_words, read_script
from handtools.text.shell.hazards import find_hazards
from handtools.text.shell.wrapper_programs import as_rule_command
from tests.fuzz.drawn_values import text_of

SEEDS = [
    b"git log --oneline -3 && npm run build 2>&1 | tail -5",
    b"cat <<'EOF' > x\n$(rm -rf /)\nEOF\nfor i in *; do echo \"$i\"; done",
    b"env A=b timeout 5 bash -c 'sed -i s/a/b/w f x; find . -exec rm {} +'",
    b"x=$((1+2)); [[ -f a ]] && { echo {a,b}$'\\n'; } || (cd d; ls)",
    b"ssh h 'awk \"{system(1)}\"' & xargs -I{} tar cIf x {}",
]
WORDS = [
    "$(", "`", "${", "$'", '"', "'", "\\\n", "<<EOF\n", "<<-", "&&", "||", "|&", ";;", "{a,b}", "[[", "((", "case x in",
    "if", "then", "fi", "for", "do", "done", "function f", "sudo ", "env -S ", "bash -c ", "eval ", "xargs ",
    "find . -exec ", "sed 's/a/b/e'", "git -c x=y ", "time ", "coproc ", "2>/dev/null", ">&", "\u00a0", "\U00010000",
]  # fmt: skip
PARSERS = ["handtools.text.shell"]
FOUND: dict[str, bytes] = {}
ONE_IN = 8


def fuzz(data):
    text = text_of(data)
    script = read_script(text)
    assert not (script.parts and script.opaque)
    for part in (*script.parts, *script.found):
        find_hazards(part)
        always_allow_prefix(part)
        as_rule_command(part)
    for part in script.parts:
        assert part in read_script(quote_words(part)).parts or read_script(quote_words(part)).opaque
    if script.parts and zlib.crc32(data) % ONE_IN == 0:
        checked = subprocess.run(
            ["/bin/bash", "-n"], input=text.encode("utf-8", "surrogateescape"), capture_output=True,
            check=False, env={"LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        assert checked.returncode == 0, checked.stderr
