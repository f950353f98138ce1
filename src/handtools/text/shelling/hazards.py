"""Hazards: words that make a harmless-looking command write, delete or run something."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from handtools.text.shelling.words import Words
from handtools.text.shelling.wrapping import bare_name

_RUNS, _WRITES, _DELETES, _REWRITES = (
    "runs another program",
    "writes a file",
    "deletes",
    "throws work away",
)
_AWAY = "leaves the workspace"


@dataclass(frozen=True, slots=True)
class Hazard:
    """One word, and what it does."""

    word: str
    effect: str

    def __str__(self) -> str:
        return f"`{self.word}` {self.effect}"


# Long options in full: programs take any beginning of one. A short one may stand in a cluster, or carry its value.
_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "git": {
        "--config-env": _RUNS, "--exec-path": _RUNS, "--output": _WRITES, "--no-index": _AWAY,
        "--ext-diff": _RUNS, "--textconv": _RUNS, "--open-files-in-pager": _RUNS, "--upload-pack": _RUNS,
        "--receive-pack": _RUNS, "--exec": _RUNS, "--force": _REWRITES, "--force-with-lease": _REWRITES,
        "--mirror": _REWRITES, "--hard": _REWRITES, "--delete": _DELETES, "--prune": _DELETES, "--git-dir": _AWAY,
        "--work-tree": _AWAY, "--template": _RUNS, "--discard-changes": _REWRITES,
    },
    "find": {
        "-exec": _RUNS, "-execdir": _RUNS, "-ok": _RUNS, "-okdir": _RUNS, "-fprint": _WRITES, "-fprint0": _WRITES,
        "-fprintf": _WRITES, "-fls": _WRITES, "-delete": _DELETES,
    },
    "fd": {"-x": _RUNS, "-X": _RUNS, "--exec": _RUNS, "--exec-batch": _RUNS},
    "fdfind": {"-x": _RUNS, "-X": _RUNS, "--exec": _RUNS, "--exec-batch": _RUNS},
    "sort": {"-o": _WRITES, "--output": _WRITES, "--compress-program": _RUNS},
    "rg": {"--pre": _RUNS, "--hostname-bin": _RUNS},
    "less": {"-o": _WRITES, "-O": _WRITES, "--log-file": _WRITES, "--LOG-FILE": _WRITES, "--lesskey-file": _RUNS},
    "man": {"-P": _RUNS, "--pager": _RUNS, "-H": _RUNS, "--html": _RUNS},
    "bat": {"--pager": _RUNS},
    "tree": {"-o": _WRITES},
    "sed": {"-i": _WRITES, "--in-place": _WRITES, "-f": _RUNS, "--file": _RUNS},
    "awk": {"-i": _RUNS, "-f": _RUNS, "--file": _RUNS, "--include": _RUNS, "-o": _WRITES, "-p": _WRITES},
    "tar": {
        "--to-command": _RUNS, "--checkpoint-action": _RUNS, "-I": _RUNS, "--use-compress-program": _RUNS,
        "--rsh-command": _RUNS, "--info-script": _RUNS, "-F": _RUNS, "--remove-files": _DELETES,
    },
    "zip": {"-T": _RUNS, "--unzip-command": _RUNS, "-m": _DELETES},
    "rsync": {"-e": _RUNS, "--rsh": _RUNS, "--rsync-path": _RUNS, "--delete": _DELETES},
    "curl": {
        "-o": _WRITES, "-O": _WRITES, "--output": _WRITES, "--remote-name": _WRITES, "-K": _RUNS,
        "--config": _RUNS, "-T": _AWAY, "--upload-file": _AWAY, "--unix-socket": _AWAY, "-D": _WRITES,
        "--dump-header": _WRITES, "-c": _WRITES, "--cookie-jar": _WRITES,
        "--trace": _WRITES, "--trace-ascii": _WRITES,
    },
    "wget": {
        "-O": _WRITES, "--output-document": _WRITES, "--output-file": _WRITES, "-o": _WRITES, "-e": _RUNS,
        "--execute": _RUNS, "--use-askpass": _RUNS, "--post-file": _AWAY, "--body-file": _AWAY,
    },
    "make": {
        "-f": _RUNS, "--file": _RUNS, "--makefile": _RUNS, "-C": _AWAY, "--directory": _AWAY, "--eval": _RUNS,
    },
    "go": {"-exec": _RUNS, "-toolexec": _RUNS, "-vettool": _RUNS, "-o": _WRITES},
    "cargo": {"--config": _RUNS, "--manifest-path": _AWAY},
    "npm": {"--script-shell": _RUNS, "--prefix": _AWAY, "--node-options": _RUNS, "--globalconfig": _RUNS},
    "yq": {"-i": _WRITES, "--inplace": _WRITES},
    "xxd": {"-r": _WRITES},
    "date": {"-s": "sets the clock", "--set": "sets the clock"},
    "file": {"-C": _WRITES, "--compile": _WRITES},
    "shuf": {"-o": _WRITES, "--output": _WRITES},
    "iconv": {"-o": _WRITES, "--output": _WRITES},
}  # fmt: skip
_SAME = {
    "gawk": "awk",
    "mawk": "awk",
    "nawk": "awk",
    "gmake": "make",
    "gsed": "sed",
    "more": "less",
    "most": "less",
}
_ONE_DASH = frozenset({"find", "go"})
"""Their long options have one dash, so nothing stands in clusters."""
_TEXTS: Mapping[str, tuple[tuple[re.Pattern[str], str], ...]] = {
    "less": ((re.compile(r"\+.*"), _RUNS),),
    "awk": ((re.compile(r"(?s).*(?:system|getline|[|>]|@load).*"), _RUNS),),
    "sed": (
        (re.compile(r"(?s)(?:.*[\s;{}/\d$,!])?[wWeE](?:\s.*)?"), _RUNS),
        (re.compile(r"(?s).*s([^\w\s]).*\1.*\1[a-zA-Z\d]*[weE].*"), _RUNS),
    ),
    "git": ((re.compile(r"ext::.*"), _RUNS),),
    "make": ((re.compile(r"(?:SHELL|MAKEFLAGS|MAKE)[:+?]?=.*"), _RUNS),),
    "tar": ((re.compile(r"[a-zA-Z]*[IF][a-zA-Z]*"), _RUNS),),
}  # fmt: skip
_GIT_SHORT: Mapping[str, Mapping[str, str]] = {
    "push": {"-f": _REWRITES, "-d": _DELETES},
    "branch": {"-D": _DELETES, "-d": _DELETES, "-f": _REWRITES, "-M": _REWRITES},
    "tag": {"-d": _DELETES, "-f": _REWRITES},
    "checkout": {"-f": _REWRITES, "-B": _REWRITES, "--": _REWRITES, ".": _REWRITES},
    "switch": {"-f": _REWRITES, "-C": _REWRITES},
    "clean": {"-f": _DELETES, "-x": _DELETES, "-d": _DELETES},
    "grep": {"-O": _RUNS},
    "rebase": {"-x": _RUNS},
    "diff": {"-O": _AWAY},
    "worktree": {"remove": _DELETES},
    "stash": {"drop": _DELETES, "clear": _DELETES},
    "remote": {"add": _AWAY, "set-url": _AWAY},
    "bisect": {"run": _RUNS},
    "submodule": {"foreach": _RUNS},
    "format-patch": {"-o": _WRITES},
    "archive": {"-o": _WRITES},
}
_GIT_FIRST: Mapping[str, str] = {"-c": _RUNS, "-C": _AWAY, "-p": _RUNS, "--paginate": _RUNS}
_PUSHED = re.compile(r"\+.+|:.+")
_OPERANDS = {"uniq": 1}
"""How many plain words they take before the next one is a file to write."""


def hazards(words: Words) -> tuple[Hazard, ...]:
    """The words of a command that a rule about its beginning does not speak for."""
    name = bare_name(words[0])
    name = _SAME.get(name, name)
    options = _OPTIONS.get(name, {})
    found = []
    if name == "git":
        task = next((word for word in words[1:] if not word.startswith("-")), "")
        options = {**options, **_GIT_SHORT.get(task, {})}
        first = words[1 : words.index(task)] if task else words[1:]
        found += [Hazard(word, _GIT_FIRST[word]) for word in first if word in _GIT_FIRST]
        if task == "push":
            found += [Hazard(word, _REWRITES) for word in words if _PUSHED.fullmatch(word)]
    operands = 0
    for word in words[1:]:
        effect = _option(word, options, clusters=name not in _ONE_DASH) or _text(word, name)
        operands += not word.startswith("-")
        if not effect and not word.startswith("-") and operands > _OPERANDS.get(name, operands):
            effect = _WRITES
        if effect:
            found.append(Hazard(word, effect))
    return tuple(found)


def _option(word: str, options: Mapping[str, str], *, clusters: bool) -> str:
    if word in options:
        return options[word]
    name = word.partition("=")[0]
    if name.startswith("--"):
        longer = (effect for option, effect in options.items() if len(name) > 2 and option.startswith(name))
        return next(longer, "")
    if word.startswith("-") and clusters:
        short = (effect for option, effect in options.items() if len(option) == 2 and option[1] in word[1:])
        return next(short, "")
    return ""


def _text(word: str, name: str) -> str:
    return next((effect for pattern, effect in _TEXTS.get(name, ()) if pattern.fullmatch(word)), "")
