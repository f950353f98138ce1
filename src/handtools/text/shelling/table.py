"""The table: for each program the options and words that make it do more than its name says.

One line is a program, or several that are alike, what it then does, and the spellings of that. `git:push` is about
one task of a program. Long options are written in full: programs take any beginning of one. Patterns of words come
with an example. Every spelling is a test (`tests/unit/text/shelling/test_hazards.py`).
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

EFFECTS = {
    "runs": "runs another program",
    "writes": "writes a file",
    "deletes": "deletes",
    "rewrites": "throws work away",
    "away": "leaves the workspace",
    "connects": "goes to another machine",
    "sets": "sets the clock",
}

TABLE = """
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
ruff                writes    --fix --fix-only --add-noqa
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
mvn                 runs      -f --file -s --settings -gs --global-settings
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


class Pattern(NamedTuple):
    """Words of a program that match, what it then does, and one such word."""

    programs: str
    effect: str
    words: str
    example: str
    place: int | None = None
    """Only the word at this place."""


PATTERNS = (
    Pattern("less,more,most", "runs", r"\+.*", "+!id"),
    Pattern("awk,gawk,mawk,nawk", "runs", r"(?s).*(?:system|getline|[|>@]).*", "BEGIN{system(1)}"),
    Pattern("awk,gawk,mawk,nawk", "runs", r"(?s).*(?:system|getline|[|>@]).*", '@include "evil"'),
    Pattern("git", "runs", r"ext::.*", "ext::sh"),
    Pattern("make,gmake", "runs", r"[A-Za-z_.][\w.]*[:+?!]*=.*", "CC=./evil"),
    Pattern("make,gmake", "runs", r"[A-Za-z_.][\w.]*[:+?!]*=.*", ".SHELLFLAGS=x"),
    Pattern("tar,bsdtar", "runs", r"[a-zA-Z]*[IF][a-zA-Z]*", "cIf", place=1),
    Pattern("tar,bsdtar", "away", r"[a-zA-Z]*[CP][a-zA-Z]*", "xPf", place=1),
    Pattern("cargo", "runs", r"\+.*", "+nightly"),
    Pattern("curl", "away", r"(?s)(?:-[a-zA-Z]*[dF]|--[\w-]+=)?(?:[^@<]*=)?[@<].+", "@/etc/passwd"),
    Pattern("curl", "away", r"(?s)(?:-[a-zA-Z]*[dF]|--[\w-]+=)?(?:[^@<]*=)?[@<].+", "-Ff=@.ssh/id"),
    Pattern("curl", "away", r"(?i)(?:file|scp|sftp|dict|gopher|smb):.*", "file:///etc/passwd"),
    Pattern("gcc,g++,cc,c++,clang,clang++", "runs", r"@.+", "@options"),
    Pattern("date", "sets", r"[0-9]{6,}.*", "010100002030"),
)
OPERANDS = {"uniq": (1, "writes"), "xxd": (1, "writes"), "git:symbolic-ref": (2, "rewrites")}
"""How many plain words they take, a task among them, and what the next one does."""
NO_CLUSTERS = frozenset({"find", "go", "openssl", "gcc", "g++", "cc", "c++", "clang", "clang++"})
"""Their long options have one dash, so nothing stands in clusters."""


@dataclass(frozen=True, slots=True)
class Row:
    """One spelling."""

    program: str
    task: str
    effect: str
    shape: str


@cache
def rows() -> tuple[Row, ...]:
    """The table, spelling by spelling."""
    lines = (line.split() for line in TABLE.strip().splitlines())
    return tuple(
        Row(program.partition(":")[0], program.partition(":")[2], EFFECTS[effect], shape)
        for programs, effect, *shapes in lines
        for program in programs.split(",")
        for shape in shapes
    )


@cache
def options(program: str, task: str) -> dict[str, str]:
    """What the options of a program do, those of one of its tasks among them."""
    return {row.shape: row.effect for row in rows() if row.program == program and row.task in {"", task}}


@cache
def patterns(program: str) -> tuple[tuple[re.Pattern[str], str, int | None], ...]:
    """What words of a program do, by what they look like, and where."""
    mine = (each for each in PATTERNS if program in each.programs.split(","))
    return tuple((re.compile(each.words), EFFECTS[each.effect], each.place) for each in mine)


TASKED = frozenset({"git", "go"})
"""Programs of which the first plain word says what they do."""
