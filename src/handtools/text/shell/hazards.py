"""Hazards of shell commands: words that make a harmless-looking command write, delete or run things.

Each line of `HAZARD_TABLE` has a program (or several similar ones), an effect, and the options that have
this effect. `git:push` means one subcommand of a program. Long options are written in full, since programs
accept any unambiguous prefix. Word patterns come with an example. Every option and example is a test case.
For sed, the script is parsed to see whether it runs programs or writes files.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from handtools.text.shell.word_unquoting import CommandWords
from handtools.text.shell.wrapper_programs import program_basename

HAZARD_EFFECTS = {
    "runs": "runs another program",
    "writes": "writes a file",
    "deletes": "deletes",
    "rewrites": "discards work",
    "away": "reaches outside the workspace",
    "connects": "connects to another machine",
    "sets": "sets the clock",
}

HAZARD_TABLE = """
git                 runs      --config-env --exec-path --ext-diff --textconv --open-files-in-pager --upload-pack
git                 runs      --receive-pack --exec --template --show-signature --extcmd
git                 writes    --output --output-directory
git                 away      --no-index --git-dir --work-tree --separate-git-dir --unsafe-paths
git                 rewrites  --force --force-with-lease --mirror --hard --discard-changes
git                 deletes   --delete --prune
git:push            rewrites  -f
git:push            deletes   -d
git:branch          deletes   -D -d
git:branch          rewrites  -f -M
git:branch          runs      --edit-description
git:tag             deletes   -d
git:tag             rewrites  -f
git:checkout        rewrites  -f -B -- .
git:switch          rewrites  -f -C
git:restore         rewrites  .
git:clean           deletes   -f -x -d
git:grep            runs      -O
git:rebase          runs      -x -i --interactive
git:diff            away      -O
git:difftool        runs      -x -t --tool
git:mergetool       runs      -t --tool
git:clone           runs      -u -c --config
git:fetch           runs      -u
git:help            runs      -w --web -i --info
git:send-email      runs      --smtp-server --to-cmd --cc-cmd --sendmail-cmd
git:init            away      --separate-git-dir
git:worktree        deletes   remove
git:worktree        away      add
git:stash           deletes   drop clear
git:remote          away      add set-url
git:bisect          runs      run
git:submodule       runs      foreach
git:filter-branch   rewrites  --tree-filter --index-filter --msg-filter --env-filter
git:format-patch    writes    -o
git:archive         writes    -o
git:archive         connects  --remote
git:config          runs      -e --edit --add --replace-all
git:config          deletes   --unset --unset-all --remove-section
git:reflog          deletes   expire delete
git:remote          deletes   rm remove prune
git:remote          rewrites  rename
git:cat-file        runs      --filters
git:notes           deletes   remove prune
git:symbolic-ref    deletes   -d
git:bundle          writes    create
find                runs      -exec -execdir -ok -okdir
find                writes    -fprint -fprint0 -fprintf -fls
find                deletes   -delete
find                away      -files0-from
fd,fdfind           runs      -x -X --exec --exec-batch
sort                writes    -o --output
sort                runs      --compress-program
split               runs      --filter
rg                  runs      --pre --hostname-bin -z --search-zip
ag,ack              runs      --pager
less,more,most      writes    -o -O --log-file --LOG-FILE
less,more,most      runs      -k --lesskey-file --lesskey-src --lesskey-content
man                 runs      -P --pager -H --html -C --config-file --gxditview
bat,batcat          runs      --pager
tree                writes    -o
sed,gsed            writes    -i --in-place
sed,gsed            runs      -f --file
awk,gawk,mawk,nawk  runs      -i --include -f --file -E --exec -l --load -D --debug -W
awk,gawk,mawk,nawk  writes    -o --pretty-print -p --profile -d --dump-variables
tar,bsdtar          runs      --to-command --checkpoint-action -I --use-compress-program --rsh-command
tar,bsdtar          runs      --rmt-command --info-script --new-volume-script -F
tar,bsdtar          away      -C --directory -P --absolute-names
tar,bsdtar          deletes   --remove-files
zip                 runs      -T --unzip-command
zip                 deletes   -m
rsync               runs      -e --rsh --rsync-path
rsync               deletes   --delete --remove-source-files
scp,sftp            runs      -S -o -F
curl                writes    -o -O --output --remote-name --remote-name-all --output-dir -D --dump-header
curl                writes    -c --cookie-jar --trace --trace-ascii --libcurl --stderr --etag-save --hsts --alt-svc
curl                runs      -K --config --engine
curl                away      -T --upload-file --unix-socket --netrc-file
wget                writes    -O --output-document -o --output-file -a --append-output
wget                runs      -e --execute --use-askpass --config
wget                away      --post-file --body-file -P --directory-prefix -i --input-file
make,gmake          runs      -f --file --makefile --eval -E -I --include-dir
make,gmake          away      -C --directory
go                  runs      -exec -toolexec -vettool -ldflags -gcflags -asmflags -overlay -modfile
go                  writes    -o
go                  away      -C
go:env              runs      -w -u
cargo               runs      --config -Z
cargo               away      --manifest-path -C
cargo               writes    --target-dir
npm                 runs      --script-shell --node-options --globalconfig --userconfig
npm                 away      --prefix -C
pnpm                away      -C --dir --prefix
yarn                away      --cwd
pip,pip3            runs      --python
docker,podman       connects  -H --host --context --config
kubectl             runs      --kubeconfig
kubectl             connects  --server --context
systemctl           connects  -H --host
journalctl          deletes   --vacuum-size --vacuum-time --vacuum-files --rotate
ruff                writes    --fix --fix-only --add-noqa --config -o --output-file
mypy                runs      --config-file --python-executable --install-types
pylint              runs      --init-hook --load-plugins --rcfile
eslint              runs      --rulesdir --resolve-plugins-relative-to --parser
pytest              runs      -p -c --config-file --override-ini -o --pdbcls --rootdir --confcutdir
mocha               runs      -r --require --config
jest                runs      --config -c --globalSetup --globalTeardown --setupFiles --runner --testEnvironment
prettier            runs      --plugin
prettier            writes    -w --write
rspec               runs      -r --require -O --options
flake8              runs      --config --append-config
cmake               runs      -P -E -C --toolchain
ninja               runs      -f
ninja               away      -C
gradle              runs      -I --init-script -b --build-file -c --settings-file
gradle              away      -p --project-dir
bazel               runs      --workspace_status_command --run_under --bazelrc --strategy
just                runs      -f --justfile --shell --shell-arg -c --command
just                away      -d --working-directory
tox                 runs      -c --conf -x --override
mvn                 runs      -f --file -s --settings -gs --global-settings -D --define
terraform,tofu      writes    -out -state-out -backup -generate-config-out
terraform,tofu      runs      -plugin-dir
terraform,tofu      deletes   -destroy
terraform,tofu      away      -chdir -state
dotnet              runs      -s --settings -a --test-adapter-path -p --property --collect -l --logger
dotnet              writes    -o --output --results-directory --artifacts-path
tsc                 runs      --plugins
tsc                 writes    --outDir --outFile --declarationDir --tsBuildInfoFile
tsc                 writes    --generateTrace --generateCpuProfile
jq                  away      -f --from-file -L --library-path --rawfile --slurpfile --argfile
rake                runs      -f --rakefile -r --require -e --execute -R --rakelibdir
task                runs      -t --taskfile
task                away      -d --dir
ssh-keygen          runs      -D -w
openssl             runs      -engine -provider-path engine
gcc,g++,cc,c++      runs      -wrapper -B -fplugin -specs
clang,clang++       runs      -fplugin -B -Xclang
yq                  writes    -i --inplace
xxd                 writes    -r
date                sets      -s --set
file                writes    -C --compile
shuf                writes    -o --output
iconv               writes    -o --output
"""


class HazardPattern(NamedTuple):
    """A regex for hazardous words of some programs, their effect, and an example."""

    programs: str
    effect: str
    words: str
    example: str
    place: int | None = None
    """The index of the only word that the regex applies to; None for any word."""


HAZARD_PATTERNS = (
    HazardPattern("less,more,most", "runs", r"\+.*", "+!id"),
    HazardPattern("awk,gawk,mawk,nawk", "runs", r"(?s).*(?:system|getline|[|>@]).*", "BEGIN{system(1)}"),
    HazardPattern("awk,gawk,mawk,nawk", "runs", r"(?s).*(?:system|getline|[|>@]).*", '@include "evil"'),
    HazardPattern("git", "runs", r"ext::.*", "ext::sh"),
    HazardPattern("make,gmake", "runs", r"[A-Za-z_.][\w.]*[:+?!]*=.*", "CC=./evil"),
    HazardPattern("make,gmake", "runs", r"[A-Za-z_.][\w.]*[:+?!]*=.*", ".SHELLFLAGS=x"),
    HazardPattern("tar,bsdtar", "runs", r"[a-zA-Z]*[IF][a-zA-Z]*", "cIf", place=1),
    HazardPattern("tar,bsdtar", "away", r"[a-zA-Z]*[CP][a-zA-Z]*", "xPf", place=1),
    HazardPattern("cargo", "runs", r"\+.*", "+nightly"),
    HazardPattern("curl", "away", r"(?s)(?:-[a-zA-Z]*[dF]|--[\w-]+=)?(?:[^@<]*=)?[@<].+", "@/etc/passwd"),
    HazardPattern("curl", "away", r"(?s)(?:-[a-zA-Z]*[dF]|--[\w-]+=)?(?:[^@<]*=)?[@<].+", "-Ff=@.ssh/id"),
    HazardPattern("curl", "away", r"(?i)(?:file|scp|sftp|dict|gopher|smb):.*", "file:///etc/passwd"),
    HazardPattern("gcc,g++,cc,c++,clang,clang++,tsc,mypy,dotnet", "runs", r"@.+", "@options"),
    HazardPattern("dotnet", "runs", r"/[A-Za-z]+[:=].*", "/p:CustomBeforeMicrosoftCommonTargets=x"),
    HazardPattern("date", "sets", r"[0-9]{6,}.*", "010100002030"),
)
OPERANDS_BEFORE_OUTPUT = {"uniq": (1, "writes"), "xxd": (1, "writes"), "git:symbolic-ref": (2, "rewrites")}
"""By program or `program:task`: the number of harmless operands, and the effect of the next one."""
SINGLE_DASH_PROGRAMS = frozenset(
    {"find", "go", "openssl", "gcc", "g++", "cc", "c++", "clang", "clang++", "terraform", "tofu"}
)
"""Programs whose long options have one dash, so that `-abc` is not a cluster of short options."""


@dataclass(frozen=True, slots=True)
class HazardRow:
    """One row of the hazard table: a program, its subcommand, an option, and the effect of that option."""

    program: str
    task: str
    effect: str
    shape: str


@cache
def parse_hazard_table() -> tuple[HazardRow, ...]:
    """Parse the hazard table into rows, one per option."""
    lines = (line.split() for line in HAZARD_TABLE.strip().splitlines())
    return tuple(
        HazardRow(program.partition(":")[0], program.partition(":")[2], HAZARD_EFFECTS[effect], shape)
        for programs, effect, *shapes in lines
        for program in programs.split(",")
        for shape in shapes
    )


@cache
def hazardous_options(program: str, task: str) -> dict[str, str]:
    """Return the hazardous options of a program and one of its subcommands, each with its effect."""
    return {
        row.shape: row.effect
        for row in parse_hazard_table()
        if row.program == program and row.task in {"", task}
    }


@cache
def hazard_patterns_of_program(program: str) -> tuple[tuple[re.Pattern[str], str, int | None], ...]:
    """Return the regexes of a program's hazardous words, each with its effect and word index."""
    mine = (each for each in HAZARD_PATTERNS if program in each.programs.split(","))
    return tuple((re.compile(each.words), HAZARD_EFFECTS[each.effect], each.place) for each in mine)


PROGRAMS_WITH_SUBCOMMANDS = frozenset({"git", "go"})
"""Programs whose first operand is a subcommand, such as `git push`."""

_ADDRESS = re.compile(r"[0-9]+(?:~[0-9]+)?|\$|[+~][0-9]+")
_PLAIN = frozenset("pPdDnNgGhHxlqQ=zF")
_TO_LINE_END = frozenset("aicrR#")
_LABELLED = frozenset("v:btT")
"""sed commands followed by a label or a version, which ends at a semicolon, a brace or white space."""
_LABEL = re.compile(r"[ \t]*[^\s;}]*")
_FLAGS = re.compile(r"[gpiImM0-9]*")


def sed_scripts(words: CommandWords) -> list[str]:
    """Return the sed scripts among the words of a sed command, without its options and files."""
    found, plain = [], []
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        name, given, value = word.partition("=")
        if word == "--":
            plain += rest
            break
        if len(name) > 2 and "--expression".startswith(name):
            found += [value] if given else rest[:1]
            rest = rest if given else rest[1:]
        elif re.fullmatch(r"-[a-zA-Z]*?e.*", word, re.DOTALL) and not word.startswith("--"):
            inline = word.partition("e")[2]
            found += [inline] if inline else rest[:1]
            rest = rest if inline else rest[1:]
        elif not word.startswith("-") or word == "-":
            plain.append(word)
    return found or plain[:1]


def sed_script_effect(script: str) -> str:
    """Return the effect of a sed script besides printing: `writes`, `runs` (also if unclear), or empty."""
    place = 0
    while place < len(script):
        if script[place] in " \t\n;{}!,":
            place += 1
        elif script[place] in "/\\":
            place = _offset_after_parts(script, place + (script[place] == "\\"), 1)
            if place < 0:
                return "runs"
            place += script[place : place + 1] in {"I", "M"}
        elif number := _ADDRESS.match(script, place):
            place = number.end()
        else:
            place, effect = _end_and_effect_of_sed_command(script, place)
            if effect:
                return effect
    return ""


def _end_and_effect_of_sed_command(script: str, place: int) -> tuple[int, str]:
    """Parse one sed command; return the offset after it, and its effect."""
    name = script[place]
    if name in _PLAIN:
        return place + 1, ""
    if name in _TO_LINE_END:
        return _line_end_offset(script, place), ""
    if name in _LABELLED and (label := _LABEL.match(script, place + 1)):
        return label.end(), ""
    if name in "sy":
        place = _offset_after_parts(script, place + 1, 2)
        if place < 0:
            return place, "runs"
        flags = _FLAGS.match(script, place) if name == "s" else None
        place = flags.end() if flags else place
        if place == len(script) or script[place] in " \t\n;}#":
            return place, ""
        return place, "writes" if script[place] == "w" else "runs"
    return place, "writes" if name in "wW" else "runs"


def _offset_after_parts(script: str, place: int, parts: int) -> int:
    """Return the offset after `parts` parts separated by the delimiter at `place`; -1 if unclosed."""
    sign = script[place : place + 1]
    if not sign or sign in "\n\\":
        return -1
    for _ in range(parts):
        place += 1
        while place < len(script) and script[place] != sign:
            place += 2 if script[place] == "\\" else 1
        if place >= len(script):
            return -1
    return place + 1


def _line_end_offset(script: str, place: int) -> int:
    while place < len(script) and script[place] != "\n":
        place += 2 if script[place] == "\\" else 1
    return place + 1


_GIT_FIRST: Mapping[str, str] = {"-c": "runs", "-C": "away", "-p": "runs", "--paginate": "runs"}
_PUSHED = re.compile(r"\+.+|:.+")


@dataclass(frozen=True, slots=True)
class Hazard:
    """One hazardous word of a command, and its effect in words."""

    word: str
    effect: str

    def __str__(self) -> str:
        return f"`{self.word}` {self.effect}"


def find_hazards(words: CommandWords) -> tuple[Hazard, ...]:
    """Find the hazardous words of a command; an "always allow" rule for its prefix must not cover them."""
    name = program_basename(words[0])
    task = (
        next((word for word in words[1:] if not word.startswith("-")), "")
        if name in PROGRAMS_WITH_SUBCOMMANDS
        else ""
    )
    found = [*_find_git_hazards(words, task)] if name == "git" else []
    if name in {"sed", "gsed"}:
        reached = ((script, sed_script_effect(script)) for script in sed_scripts(words))
        found += [Hazard(script, HAZARD_EFFECTS[effect]) for script, effect in reached if effect]
    known, operands = hazardous_options(name, task), 0
    most, beyond = OPERANDS_BEFORE_OUTPUT.get(f"{name}:{task}" if task else name, (len(words), ""))
    for place, word in enumerate(words[1:], 1):
        effect = _effect_of_option(word, known, name) or _effect_by_pattern(word, name, place)
        operands += not word.startswith("-")
        if not effect and not word.startswith("-") and operands > most:
            effect = HAZARD_EFFECTS[beyond]
        if effect:
            found.append(Hazard(word, effect))
    return tuple(found)


def _find_git_hazards(words: CommandWords, task: str) -> Iterator[Hazard]:
    """Find git-specific hazards: options before the subcommand, forced pushes, and settings."""
    first = words[1 : words.index(task)] if task else words[1:]
    yield from (Hazard(word, HAZARD_EFFECTS[_GIT_FIRST[word]]) for word in first if word in _GIT_FIRST)
    if task == "push":
        yield from (Hazard(word, HAZARD_EFFECTS["rewrites"]) for word in words if _PUSHED.fullmatch(word))
    plain = [word for word in words[1:] if not word.startswith("-")]
    if task == "config" and len(plain) > 2:
        yield Hazard(plain[1], HAZARD_EFFECTS["runs"])


def _effect_of_option(word: str, known: Mapping[str, str], program: str) -> str:
    if word in known:
        return known[word]
    name = word.partition("=")[0]
    if program in SINGLE_DASH_PROGRAMS:
        one_dash = name.removeprefix("-") if name.startswith("--") else name
        short = (effect for option, effect in known.items() if len(option) == 2 and word.startswith(option))
        return known.get(one_dash, "") or (next(short, "") if program not in {"find", "go"} else "")
    if name.startswith("--"):
        longer = (effect for option, effect in known.items() if len(name) > 2 and option.startswith(name))
        return next(longer, "")
    if word.startswith("-"):
        short = (effect for option, effect in known.items() if len(option) == 2 and option[1] in word[1:])
        return next(short, "")
    return ""


def _effect_by_pattern(word: str, program: str, place: int) -> str:
    matching = (
        effect
        for pattern, effect, only in hazard_patterns_of_program(program)
        if only in {None, place} and pattern.fullmatch(word)
    )
    return next(matching, "")
