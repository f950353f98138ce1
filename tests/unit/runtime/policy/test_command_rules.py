"""Rules over commands: what they allow, what gets past others, and what a lasting yes covers."""

import pytest

from handtools import Policy, Reply, Rule, UsageError
from handtools.core.commands import Command
from handtools.core.effects import CommandRun
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.testing.stubs import CannedOutput, MemoryCommands

LOOK = Rule(
    "look", "allow", "It only looks.",
    commands=(
        "git status|log|diff|show", "ls|cat|head|sort|find|less|grep|echo|sed",
        "env|timeout|nice|nohup|time|command",
    ),
    match=("git log -1", "ls && git status", "cat a | sort"),
    not_match=("git push", "git", "ls; rm a", "git log --output=x", "ls > a"),
)  # fmt: skip
NO_RM = Rule(
    "no-rm", "deny", "Deleting is done with tools.", commands=("rm",), match=("ls; rm a", "sudo rm a")
)
PUSH = Rule("push", "ask", "Others will see it.", commands=("git push",))
POLICY = Policy(rules=(LOOK, NO_RM, PUSH))


def decide(script: str, *, policy: Policy = POLICY, confined: bool = False):
    return policy.decide(CommandRun(Command(script=script), confined=confined), "bash")


def verdict(script: str, **options) -> str:
    return decide(script, **options).verdict


@pytest.mark.parametrize(
    "script", ["ls", "git log -1 | head", "ls && git status; cat a", "ls 2>/dev/null", "ls\ngit diff"]
)
def test_a_script_is_allowed_when_every_part_is(script):
    assert verdict(script) == "allow"


@pytest.mark.parametrize("script", ["ls && make", "make; ls", "ls | xargs cat", "git", "git commit"])
def test_one_part_without_a_rule_asks(script):
    assert verdict(script) == "ask"


@pytest.mark.parametrize(
    "script",
    [
        "rm a", "ls && rm a", "ls | rm a", "(rm a)", "echo $(rm a)", "if ls; then rm a; fi", "/bin/rm a", "'rm' a",
        "r\\m a", "sudo rm a", "bash -c 'ls; rm a'", "find . -exec rm {} +", "f() { rm a; }; f", "command rm a",
        "busybox rm a",
    ],
)  # fmt: skip
def test_one_part_is_enough_to_deny(script):
    decision = decide(script)
    assert (decision.verdict, decision.rule) == ("deny", "no-rm")


# Published ways around the lists of other agents: none of them may be allowed by a rule about something else.
BYPASSES = {
    "a wrapper hides the program": "timeout 9 rmdir x",
    "env hides the program": "env rmdir x",
    "env sets what is loaded": "env LD_PRELOAD=./x ls",
    "nohup hides the program": "nohup rmdir x",
    "nice hides the program": "nice -n 5 rmdir x",
    "time hides the program": "time rmdir x",
    "command hides the program": "command rmdir x",
    "a newline begins another command": "ls\nrmdir x",
    "a single ampersand begins another command": "ls & rmdir x",
    "a redirection writes": "echo x > ~/.bashrc",
    "an appending redirection writes": "echo x >> ~/.bashrc",
    "find deletes": "find . -delete",
    "find runs": "find . -exec rmdir {} ;",
    "find runs, escaped": "find . -exec rmdir {} \\;",
    "git log writes": "git log --output=../x",
    "git log writes, shortened": "git log --outp=../x",
    "git diff reads elsewhere": "git diff --no-index /etc/passwd a",
    "git is told another pager": "git -c core.pager='touch x' log",
    "git is told by its environment": "GIT_PAGER='touch x' git log",
    "less runs": "less '+!id' a",
    "sort writes": "sort -o a b",
    "sort writes, in a cluster": "sort -uo a b",
    "sed writes in place": "sed -i s/a/b/ x",
    "sed runs": "sed '1e id' x",
    "a substitution runs": "ls $(rmdir x)",
    "a substitution in quotes runs": 'ls "$(rmdir x)"',
    "backquotes run": "ls `rmdir x`",
    "a process substitution runs": "cat <(rmdir x)",
    "an assignment changes the path": "PATH=.:$PATH ls",
    "a function takes a name": "ls() { rmdir x; }; ls",
    "an alias takes a name": "alias ls=rmdir; ls x",
    "hash takes a name": "hash -p /tmp/x ls; ls",
    "a word over two lines": "ls; rmd\\\nir x",
    "a here-document feeds a shell": "bash <<EOF\nrmdir x\nEOF",
    "a pipe feeds a shell": "echo rmdir x | sh",
    "another program of that name": "./ls",
    "another program of that name, absolute": "/tmp/git status",
    "a variable is the program": "X=rmdir; $X x",
    "an escape is the program": "$'rmdir' x",
    "braces are words": "ls {a,b}; {rmdir,x}",
    "a carriage return hides a line": "ls #\rrmdir x",
    "a trap runs later": "trap 'rmdir x' EXIT; ls",
    "coproc runs": "coproc rmdir x",
    "a job number": "%1; ls",
}  # fmt: skip


@pytest.mark.parametrize("script", BYPASSES.values(), ids=BYPASSES)
def test_a_published_bypass_asks(script):
    assert verdict(script) == "ask"


def test_without_rules_everything_asks_and_the_reason_says_why():
    assert verdict("ls", policy=Policy()) == "ask"
    decision = decide("ls > a", policy=Policy())
    assert decision.rule == "not plain"
    assert "`> a` redirects" in decision.reason


def test_a_decision_names_the_part_and_the_rule():
    decision = decide("ls && git push origin 'a b'")
    assert (decision.verdict, decision.rule) == ("ask", "push")
    assert decision.target == "git push origin 'a b'"
    assert "`look` does not cover this: `--output=x` writes" in decide("ls; git log --output=x").reason


def test_a_rule_that_names_the_hazard_allows_it():
    policy = Policy(rules=(Rule("clean", "allow", "", commands=("git clean -fd",)),))
    assert verdict("git clean -fd", policy=policy) == "allow"
    assert verdict("git clean -fdx", policy=policy) == "ask"


def test_a_star_stands_for_one_word():
    policy = Policy(rules=(Rule("scripts", "allow", "", commands=("npm run *",)),))
    assert verdict("npm run build", policy=policy) == "allow"
    assert verdict("npm run", policy=policy) == "ask"


def test_what_the_kernel_keeps_inside_needs_no_question_but_a_no_stays_a_no():
    assert verdict("make > log", confined=True) == "allow"
    assert decide("make", confined=True).rule == "confined"
    assert verdict("rm a", confined=True) == "deny"
    assert verdict("git push", confined=True) == "ask"


def test_a_default_of_no_is_kept_for_commands_whatever_confines_them():
    policy = Policy(
        rules=(LOOK,), defaults={"read": "allow", "change": "allow", "run": "deny", "visit": "deny"}
    )
    assert verdict("make", policy=policy, confined=True) == "deny"
    assert verdict("ls", policy=policy, confined=True) == "deny"


@pytest.mark.parametrize("script", ["make", "make > log", "for x in 1 2; do echo $x; done", "ls"])
def test_a_stated_default_for_commands_holds_in_a_sandbox_too(script):
    assert verdict(script, policy=Policy(), confined=True) == "allow"
    assert verdict(script, policy=Policy(defaults={"run": "ask"}), confined=True) == "ask"
    assert verdict(script, policy=Policy(defaults={"run": "deny"}), confined=True) == "deny"
    assert verdict(script, policy=Policy(defaults={"run": "allow"})) == "allow"


def test_a_script_that_is_not_plain_is_refused_for_the_default_that_refuses_it():
    refused = decide("make > log", policy=Policy(defaults={"run": "deny"}))
    plain = decide("make", policy=Policy(defaults={"run": "deny"}))
    assert (refused.verdict, refused.rule, refused.reason) == ("deny", plain.rule, plain.reason)


def test_an_allowed_command_is_not_asked_about_under_a_stated_default():
    policy = Policy(defaults={"run": "ask"}).with_rules([LOOK])
    assert verdict("ls", policy=policy, confined=True) == "allow"
    assert verdict("ls; make", policy=policy, confined=True) == "ask"


def test_a_rule_about_all_commands_speaks_for_opaque_ones_too():
    everything = Policy(rules=(Rule("anything", "allow", "", effects=frozenset({"run"})),))
    assert verdict("echo $(id) > a", policy=everything) == "allow"
    nothing = Policy(rules=(Rule("nothing", "deny", "", effects=frozenset({"run"})), LOOK))
    assert verdict("ls", policy=nothing) == "deny"


def test_outside_of_a_sandbox_private_files_are_not_handed_out_by_name():
    policy = Policy()
    for script in ("cat .env", "cat ./deep/.env.local", "grep --file=id_rsa x", "ls; cat .ssh/config"):
        assert decide(script, policy=policy).rule == "private"
    assert verdict("cat .env.example", policy=policy) == "ask"
    assert verdict("cat .env", policy=policy, confined=True) == "allow"


@pytest.mark.parametrize(
    "rule",
    [
        Rule("asks", "ask", "Look first.", paths=("docs",)),
        Rule("frozen", "deny", "As it is.", effects=frozenset({"change", "run"}), paths=("docs",)),
    ],
)
def test_a_name_in_a_command_is_no_secret_where_reading_is_not_denied(rule):
    policy = Policy(rules=(rule,), defaults={"run": "allow"})
    assert verdict("cat docs/a.md", policy=policy) == "allow"


def test_a_rule_is_about_paths_or_about_commands():
    with pytest.raises(UsageError, match="separate rules"):
        Policy(rules=(Rule("both", "deny", "", paths=("a",), commands=("ls",)),))
    with pytest.raises(UsageError, match="empty command"):
        Policy(rules=(Rule("none", "deny", "", commands=("",), match=("ls",)),))


@pytest.mark.parametrize(
    "rule",
    [
        Rule("r", "allow", "", commands=("git log",), match=("git push",)),
        Rule("r", "allow", "", commands=("git log",), not_match=("git log -1",)),
        Rule("r", "allow", "", commands=("ls",), match=("ls; pwd",)),
        Rule("r", "deny", "", commands=("rm",), not_match=("echo $(rm a)",)),
    ],
)
def test_a_rule_over_commands_that_contradicts_its_examples_does_not_load(rule):
    with pytest.raises(UsageError, match="examples"):
        Policy(rules=(rule,))


def test_hosts_that_are_none_do_not_load():
    with pytest.raises(UsageError, match="not a host"):
        Policy(hosts=("https://example.com",))


async def asked_about(
    *scripts: str, policy: Policy | None = None, confined: bool = False
) -> tuple[list[int], MemoryCommands]:
    """Which of the scripts were asked about when every yes is to last."""
    asked: list[str] = []

    async def always(approval):
        asked.append(approval.preview)
        return Reply(allow=True, remember="session")

    commands = MemoryCommands({}, confined=confined)
    commands.outputs = dict.fromkeys(scripts, CannedOutput())
    box = memory_toolbox(commands=commands, approver=always, policy=policy)
    counts = []
    for number, script in enumerate(scripts):
        before = len(asked)
        result = await box.call("bash", {"command": script})
        assert result.ok, result.text
        if len(asked) > before:
            counts.append(number)
    return counts, commands


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("scripts", "asked"),
    [
        (("git push", "git push origin main"), [0]),
        (("git push", "git pull"), [0, 1]),
        (("git push", "git push --force"), [0, 1]),
        (("git push && npm run test", "npm run test", "git push"), [0]),
        (("npm run test", "npm run test -- -x", "npm run test -- -x"), [0, 1]),
        (
            ("pytest -q", "pytest tests/a -q", "pytest tests/b", "pytest -q -x", "pytest -x tests/c -q"),
            [0, 3],
        ),
        (("pytest --maxfail=1", "pytest --maxfail=2"), [0, 1]),
        (("tail -20 a", "tail -50 b", "tail -f a"), [0, 2]),
        (("make test", "make test CC=x"), [0, 1]),
        (("git diff a", "git diff -- b", "git diff @~1", "git diff --stat"), [0, 3]),
        (("npm install a", "npm install @b/c", "npm install -g d"), [0, 2]),
        (("pip install a", "pip install b==1.2", "pip install --index-url x b"), [0, 2]),
        (("export A=1", "export A=1", "export LD_PRELOAD=x"), [0, 2]),
        (("mypy src", "mypy @flags"), [0, 1]),
        (("mvn test", "mvn test -Dexec=x"), [0, 1]),
        (("ruff check", "ruff check src", "ruff check --config x"), [0, 2]),
        (("terraform plan", "terraform plan -out=x"), [0, 1]),
        (("dotnet test", "dotnet test --settings x", "dotnet test /p:A=b"), [0, 1, 2]),
        (("tsc", "tsc --plugins x"), [0, 1]),
        (("jq . a", "jq .x b", "jq -n input_filename"), [0, 2]),
        (("ls " + " ".join(f"-{n}" for n in "abcdefghi"), "ls", "ls -a"), [0, 1, 2]),
        (("git push", "git push && npm run test"), [0, 1]),
        (("npm run test", "npm run deploy"), [0, 1]),
        (("./run.sh a", "./run.sh b", "./run.sh a"), [0, 1]),
        (("python a.py", "python b.py", "python a.py"), [0, 1]),
        (("ls > a", "ls > b", "ls > a"), [0, 1]),
        (("timeout 9 make test", "make test"), [0]),
        (("make test", "timeout 9 make test"), [0, 1]),
    ],
)
async def test_a_lasting_yes_covers_commands_of_its_kind_and_no_others(scripts, asked):
    assert (await asked_about(*scripts))[0] == asked


@pytest.mark.anyio
async def test_the_question_shows_the_script_and_what_to_look_at():
    seen = []

    async def look(approval):
        seen.append(approval)
        return Reply(allow=False)

    box = memory_toolbox(commands=MemoryCommands(confined=False), approver=look)
    await box.call("bash", {"command": "find . -delete; echo x > $HOME/.bashrc"})
    [approval] = seen
    assert approval.preview.startswith("# unconfined: it can do what you can\n# not plain: ")
    assert approval.preview.endswith("\nfind . -delete; echo x > $HOME/.bashrc")
    assert "# warning: writes `$HOME/.bashrc`" in approval.preview
    assert "# warning: `-delete` deletes (`find`)" in approval.preview


@pytest.mark.anyio
async def test_listed_hosts_reach_every_command_and_need_no_question_in_a_sandbox():
    policy = Policy(hosts=("example.com",))
    asked, commands = await asked_about("make", policy=policy, confined=True)
    assert asked == []
    assert (commands.commands[0].network, commands.commands[0].hosts) == ("listed", ("example.com",))


@pytest.mark.anyio
async def test_a_host_that_is_not_listed_is_asked_about_even_for_allowed_commands_in_a_sandbox():
    seen = []

    async def once(approval):
        seen.append((approval.rule, approval.preview, approval.remembered))
        return Reply(allow=True, remember="session")

    commands = MemoryCommands({"ls": CannedOutput()}, confined=True)
    policy = Policy(rules=(LOOK,), hosts=("example.com",))
    box = memory_toolbox(commands=commands, approver=once, policy=policy)
    for hosts in (["example.com"], ["other.example"], ["other.example"], ["third.example"]):
        await box.call("bash", {"command": "ls", "hosts": hosts})
    assert [kept for _, _, kept in seen] == ["run other.example … (hosts)", "run third.example … (hosts)"]
    assert "# network: example.com, other.example" in seen[0][1]
    assert commands.commands[1].hosts == ("example.com", "other.example")


def test_the_whole_network_is_asked_about():
    command = Command(script="ls", network="on")
    assert POLICY.decide(CommandRun(command, confined=False), "bash").rule == "hosts"


@pytest.mark.anyio
async def test_why_names_the_part_and_the_rule_and_runs_nothing():
    commands = MemoryCommands(confined=False)
    box = memory_toolbox(commands=commands, policy=POLICY)
    decision = await box.why("bash", {"command": "ls && sudo rm -rf 'a b'"})
    assert (decision.verdict, decision.rule, decision.target) == ("deny", "no-rm", "rm -rf 'a b'")
    assert (await box.why("bash", {"command": "ls\ngit push"})).target == "git push"
    assert commands.commands == []


@pytest.mark.anyio
async def test_a_lasting_yes_to_an_odd_name_is_not_a_yes_to_the_name_inside_it():
    asked = []

    async def always(approval):
        asked.append(approval.title)
        return Reply(allow=True, remember="session")

    box = memory_toolbox(approver=always)
    for separator in ("\n", "\u2028", "\x0b"):
        odd = f".envrc{separator}change .mcp.json (protected){separator}x/.envrc"
        await box.call("write", {"path": odd, "content": "x"})
    before = len(asked)
    await box.call("write", {"path": ".mcp.json", "content": "{}"})
    assert len(asked) == before + 1


@pytest.mark.parametrize(
    "script",
    [
        "echo " + "a" * 20_000 + "; rm x",
        "(" + "ls a;" * 2_000 + "); rm x",
        "echo \x07; rm x",
        "echo '\ud800'; rm x",
    ],
    ids=["long", "many", "control", "surrogate"],
)
def test_padding_does_not_carry_a_command_past_a_denial(script):
    assert verdict(script, confined=True) in {"ask", "deny"}
    assert verdict(script, confined=True, policy=Policy()) == "allow"


def test_a_script_without_commands_is_seen_whole():
    assert verdict("export A=1", confined=True) == "allow"
    assert verdict("echo 'a", confined=True) == "ask"


SPELLINGS = {
    "git push": [
        "git -C . push", "git -c a.b=c push", "git --no-pager push", "git --git-dir=.git push",
        "git --git-dir .git push",
        "git --work-tree . push", "git --exec-path=x push", "git -p push", "git --bare push", 'git "push"',
        'git pu"sh"',
        "/usr/bin/git push", "/usr/lib/git-core/git-push", "git send-pack o", "env A=1 git push", "A=1 git push",
        "command git push", "builtin command git push", "exec git push", "nice git -C x push",
        "echo o | xargs git push",
        "git -c alias.z='!git push' z", "bash -c 'git -C . push'", "git \\\n push", "gi\\\nt push",
        "timeout 5 git push",
        "eval 'git push'", "(git push)", "true && git -C . push", "cat <(git push)", "x=$(git push)",
    ],
    "rm": [
        "r\\\nm x", "$'rm' x", "$'\\x72m' x", "$'\\162m' x", '$"rm" x', "r{m,} x", "\\rm x", "r''m x",
        "env -S 'rm x'",
        "alias q=rm\nq x", "tmux new 'rm x'", "compgen -C 'rm x'", "mapfile -C 'rm x' < f", "uv run rm x",
        "/lib64/ld-linux-x86-64.so.2 /bin/rm x", "find . -exec rm {} +", "busybox rm x", "trap 'rm x' EXIT",
        "hash -p /bin/rm q", "coproc rm x", "flock l -c 'rm x'",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("beginning", "script"), [(name, script) for name, scripts in SPELLINGS.items() for script in scripts]
)
def test_a_rule_against_a_command_holds_however_it_is_spelled(beginning, script):
    rules = [Rule("no", "deny", "Not here.", commands=(beginning,))]
    decision = Policy().with_rules(rules).decide(CommandRun(Command(script=script), confined=True), "bash")
    assert (decision.verdict, decision.rule) == ("deny", "no")


@pytest.mark.parametrize(
    "script",
    ["$(echo rm) x", "a=rm; $a x", "a=r; b=m; $a$b x", "/bin/r[m] x", 'a=(rm x); "${a[@]}"', "echo 'rm x' | sh",
     "bash <<E\nrm x\nE", "bash <<< 'rm x'", 'set -- rm x; "$@"', "printf x | base64 -d | bash -s"],
)  # fmt: skip
def test_a_program_that_no_rule_can_see_is_asked_about_where_a_rule_forbids_one(script):
    rules = [Rule("no", "deny", "Not here.", commands=("rm",))]
    effect = CommandRun(Command(script=script), confined=True)
    assert Policy().with_rules(rules).decide(effect, "bash").verdict == "ask"
    assert Policy().decide(effect, "bash").verdict == "allow"


@pytest.mark.parametrize(
    "script", ["git log --grep push", "git log push", "echo git push", "git stash push", "git", "git -p"]
)
def test_a_rule_against_a_task_leaves_other_tasks_alone(script):
    rules = [Rule("no", "deny", "Not here.", commands=("git push",))]
    effect = CommandRun(Command(script=script), confined=True)
    assert Policy().with_rules(rules).decide(effect, "bash").verdict == "allow"


ALLOWED = """
sed: sed 1eid f | sed s/a/id/e f | sed sXaXidXe f | sed -n w/tmp/x f | sed -i s/a/b/ f | sed -f evil f
go test: go test -toolexec=./e | go test --exec=./e | go test -exec ./e
git clone: git clone -u ./e . x | git clone --upload-pack=./e . x | git clone -c core.sshCommand=e ssh://h/x
git difftool: git difftool -x ./e | git difftool --extcmd=./e
git log: git -c core.pager=x log | git log --output=x | git -C /tmp log
find: find . -exec id ; | find . -delete | find . -fprintf x y
tar: tar xf a --to-command=./e | tar cf x --checkpoint-action=exec=./e y | tar xPf a | tar -xf a -C /tmp
awk: awk BEGIN{system(1)} | awk -E evil.awk | gawk --load=x 1 f
rg: rg --pre=./e x | rg -z x
sort: sort -o x f | sort --compress-prog=./e f
make: make CC=./e | make SHELL=./e test
curl: curl -d @/etc/passwd u | curl --libcurl x.c u | curl file:///etc/passwd
split: split --filter=./e f
gcc: gcc -wrapper ./e x.c | gcc @options
"""


@pytest.mark.parametrize(
    ("beginning", "script"),
    [
        (line.partition(": ")[0], script)
        for line in ALLOWED.strip().splitlines()
        for script in line.partition(": ")[2].split(" | ")
    ],
)
def test_leave_for_a_program_is_no_leave_for_what_it_can_be_made_to_do(beginning, script):
    rules = [Rule("look", "allow", "Fine.", commands=(beginning,))]
    quoted = " ".join(f"'{word}'" if set(word) & set(";{}()@") else word for word in script.split())
    decision = Policy().with_rules(rules).decide(CommandRun(Command(script=quoted), confined=False), "bash")
    assert decision.verdict == "ask"


@pytest.mark.parametrize("env", [{"GIT_PAGER": "sh"}, {"GIT_PAGER": "sh", "B": ""}])
def test_a_rule_does_not_speak_for_a_command_where_the_caller_decides_which_programs_run(env):
    run = CommandRun(Command(script="git log -1", env=env), confined=False)
    decision = POLICY.decide(run, "bash")
    assert decision.verdict == "ask"
    assert "the caller has set GIT_PAGER" in decision.reason
    for other in (
        CommandRun(run.command, confined=True),
        CommandRun(Command(script="git log", env={"B": ""}), confined=False),
    ):
        assert POLICY.decide(other, "bash").verdict == "allow"
