"""The approval gate: checks effects against the policy, asks the user if required, and stores grants."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from anyio import to_thread

from handtools.core.approval import Approval, Approver, Reply
from handtools.core.call import Call
from handtools.core.effects import CommandRun, Effect, effect_fingerprint, effect_targets
from handtools.core.errors import Denied, HandtoolsError, HostError
from handtools.core.events import ApprovalAsked, Decided, Event
from handtools.runtime.approval.questions import answers_request
from handtools.runtime.journal import Journal
from handtools.runtime.policy import Policy
from handtools.runtime.policy.rules import Decision, strictest_decision
from handtools.text.visible_text import visible_line, with_visible_characters

if TYPE_CHECKING:
    from handtools.text.shell.word_unquoting import CommandWords


class ApprovalPending(HandtoolsError):
    """Raised if an approval request has no reply yet; the call ends as pending and runs again after the reply."""

    def __init__(self, approval: Approval) -> None:
        super().__init__(approval.title)
        self.approval = approval
        self.so_far = ""
        """Text for the model about work already done, such as the output of a finished command."""


@dataclass(slots=True)
class ApprovalGate:
    """Checks every effect of one call against the policy and asks the user if required."""

    call: Call
    policy: Policy
    approver: Approver | None
    journal: Journal
    announce: Callable[[Event], None]
    granted: frozenset[str] = field(default_factory=frozenset)
    """Fingerprints of the effects that the user approved for this call."""
    used: set[str] = field(default_factory=set)
    """The approved fingerprints whose effects occurred in this run of the call."""
    reply: Reply | None = None
    """A reply that was sent with the call; it answers the first approval request it fits."""
    strictest: Decision | None = None
    """The strictest policy decision on any effect in this run of the call, for the log."""

    def judge(self, effect: Effect) -> Decision:
        """Check an effect against the policy and return the decision; raises `Denied`.

        Does not ask the user: a verdict of "ask" is only returned.
        """
        decision = self.policy.decide(effect, self.call.tool)
        self._announce_decision(effect, decision)
        if decision.verdict == "deny":
            raise Denied(f"`{decision.target}` is off limits ({decision.rule}).", hint=decision.reason)
        return decision

    def allows(self, effect: Effect) -> bool:
        """Whether the policy allows an effect; otherwise the caller must `admit` it."""
        decision = self.policy.decide(effect, self.call.tool)
        if decision.verdict == "allow":
            self._announce_decision(effect, decision)
        return decision.verdict == "allow"

    def _announce_decision(self, effect: Effect, decision: Decision) -> None:
        self.strictest = strictest_decision(filter(None, (self.strictest, decision)))
        if decision.verdict != "allow" or effect.kind != "read":
            self.announce(Decided(self.call.id, decision.verdict, decision.rule, effect_targets(effect)))

    async def admit(self, effect: Effect, *, question: str = "") -> None:
        """Return if the effect is allowed or approved; otherwise raise `Denied` or `ApprovalPending`.

        With a `question`, the user is asked even if the policy allows the effect.
        """
        decision = self.judge(effect)
        if decision.verdict == "allow":
            if not question:
                return
            decision = Decision("ask", "review", question, decision.target)
        # In a thread: the diff of a large file takes a long time and would block other calls.
        approval = await to_thread.run_sync(self.question, effect, decision)
        if approval.fingerprint in self.granted:
            self.used.add(approval.fingerprint)
            return
        if not question and self.remembers(approval):
            return
        reply = await self._ask(approval)
        self.announce(ApprovalAsked(approval, reply))
        if reply is None:
            raise ApprovalPending(approval)
        settle_reply(self.journal, self.call, approval, reply)

    def remembers(self, approval: Approval) -> bool:
        """Whether stored grants cover everything in an approval request."""
        kept = _grant_lines(approval)
        return bool(kept) and all(self.journal.calls.granted(self.call, each) for each in kept)

    async def _ask(self, approval: Approval) -> Reply | None:
        if self.reply is not None and answers_request(self.reply, approval):
            reply, self.reply = self.reply, None
            return reply
        if self.approver is not None:
            return await self.approver(approval)
        return unattended_reply(self.policy)

    def question(self, effect: Effect, decision: Decision) -> Approval:
        """Build the approval request for an effect and its decision."""
        from handtools.runtime.approval.preview import (
            TITLE_NAME_CHARS,
            approval_title,
            effect_preview,
            part_that_needs_approval,
        )

        decisions = self.policy.decisions(effect, self.call.tool)
        asked = part_that_needs_approval(effect, decisions)
        others = len(effect_targets(effect)) - len(effect_targets(asked))
        shown, again = effect_preview(asked, other_paths=others), not self.granted <= self.used
        wanted = approval_title(asked, self.call.tool)
        return Approval(
            call_id=self.call.id,
            title=f"Asked again because it changed: {wanted}" if again else wanted,
            preview=shown.text,
            rule=with_visible_characters(str(decision)),
            fingerprint=effect_fingerprint(effect),
            remembered="\n".join(approval_grant_lines(effect, decisions)),
            agent=visible_line(self.call.agent, TITLE_NAME_CHARS),
            session=visible_line(self.call.session, TITLE_NAME_CHARS),
            again=again,
            preview_lines=shown.lines,
            preview_bytes=shown.bytes,
            metadata=self.call.metadata,
        )


def unattended_reply(policy: Policy) -> Reply | None:
    """Return the reply that the policy gives if there is no user to ask; None if calls then stay pending."""
    if policy.unattended == "ask":
        return None
    message = "No user is available to approve this; the policy's `unattended` setting decided."
    return Reply(policy.unattended == "allow", message=message)


def settle_reply(journal: Journal, call: Call, approval: Approval, reply: Reply) -> None:
    """Record a reply and store its lasting grants; raises `Denied` if the user denied the request."""
    with suppress(HostError):  # only session reports need this record
        journal.calls.note_answer(approval, reply)
    if not reply.allow:
        hint = reply.message or "Do something else, or ask the user what they want."
        raise Denied("This was denied.", hint=hint)
    if reply.remember != "once":
        for kept in _grant_lines(approval):
            journal.calls.grant(call, kept, lasts=reply.remember)


def _grant_lines(approval: Approval) -> list[str]:
    r"""Split the remembered text into grant lines at "\n" only: paths may contain other line separators."""
    return [line for line in approval.remembered.split("\n") if line]


SHOWN_COMMAND_CHARS = 60


def approval_grant_lines(effect: Effect, decisions: Iterable[Decision]) -> list[str]:
    """Return a grant line for each target that needs approval. If all are stored, the user is not asked."""
    asked = [decision for decision in decisions if decision.verdict == "ask"]
    lines = (
        f"{effect.kind} {granted} ({each.rule})"
        for each in asked
        for granted in _grant_targets(effect, each.target)
    )
    return list(dict.fromkeys(lines))


def _grant_targets(effect: Effect, target: str) -> list[str]:
    if not isinstance(effect, CommandRun):
        return [_name_with_digest(target, target)]
    live = "live " if effect.command.live else ""
    return [f"{live}{granted}" for granted in _grant_command(effect, target)]


def _grant_command(run: CommandRun, target: str) -> list[str]:
    """Return the grant targets for a command: its prefix and each option, or a digest of exactly this command.

    A later command is covered if its prefix and options were all granted.
    """
    from handtools.text.shell import quote_words, read_script
    from handtools.text.shell.script_commands import script_runs_any_named_command

    parts = read_script(target).parts
    short = always_allow_prefix(parts[0]) if parts else None
    as_named = not run.steering and not script_runs_any_named_command(run.script, run.defined)
    if short is not None and as_named:
        prefix = f"{_name_with_digest(quote_words(short), quote_words(short))} …"
        options = map(quote_words, ((option,) for option in remembered_options(parts[0])))
        return [prefix, *(f"{prefix} with {_name_with_digest(each, each)}" for each in options)]
    first = with_visible_characters(target.strip().partition("\n")[0])[:SHOWN_COMMAND_CHARS]
    # A lasting grant covers the words only, not the content of files: agents edit the programs they run,
    # and the user chose not to be asked again.
    words_alone = replace(run, files=(), home_files=())
    return [f"exactly `{first}` [{_digest(effect_fingerprint(words_alone) + target)}]"]


def _name_with_digest(name: str, target: str) -> str:
    """Return a printable form of a name, with a digest if characters had to be escaped."""
    flat = with_visible_characters(name.replace("\n", "\\n"))
    return flat if flat == target else f"{flat} [{_digest(target)}]"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


_TWO_WORD_PREFIXES = """
git npm pnpm yarn bun cargo go docker podman kubectl helm pip pip3 pipx uv poetry pdm hatch conda mamba
gem bundle composer mvn gradle dotnet swift rustup apt apt-get dnf yum pacman brew systemctl journalctl
terraform tofu pulumi ansible nix make just task tox nox pre-commit ruff mypy alembic django-admin flask
rails rake mix stack cabal zig deno svn hg jj gh glab aws gcloud az heroku fly vercel netlify wrangler
firebase redis-cli sqlite3 tmux
"""
_THREE_WORD_PREFIXES = """
npm run, pnpm run, yarn run, bun run, docker compose, podman compose, git remote, git stash, git worktree,
git submodule, git bisect, git flow, uv pip, uv tool, cargo +nightly, kubectl config, kubectl rollout,
helm repo, go mod, go tool, gh pr, gh issue, gh repo, gh run, gh release, gh workflow, gh auth, aws s3,
aws ec2, aws iam, gcloud compute, gcloud auth, az vm, dotnet tool, rustup toolchain, conda env, nix flake,
terraform state, npm config, pip config, deno task, composer run
"""
_SUBCOMMANDS_THAT_RUN_ANYTHING = """
npm exec, npm x, pnpm exec, pnpm dlx, yarn dlx, yarn exec, bun x, uv run, uvx, pipx run, poetry run,
pdm run, hatch run, cargo run, go run, go generate, docker run, docker exec, podman run, podman exec,
kubectl exec, kubectl run, conda run, bundle exec, nix shell, nix run, nix develop, deno run, deno eval,
rails runner, mix run, gh api, git config, git bisect, git submodule, swift run, dotnet run,
composer exec, tmux new, sqlite3, docker compose exec, docker compose run, podman compose exec,
podman compose run
"""
_PROGRAMS_WITHOUT_PREFIX = """
python python2 python3 pypy node nodejs deno bun ruby perl php lua luajit R Rscript julia irb ghci scala
groovy java javac osascript pwsh powershell awk gawk mawk nawk sed ed ex vi vim nvim emacs nano m4 gdb
lldb npx uvx bunx pnpx bash sh dash zsh ksh fish env sudo doas su pkexec xargs parallel time timeout nice
nohup exec eval source . find fd rm rmdir unlink shred mv dd mkfs fdisk parted chmod chown chgrp kill
pkill killall truncate install ln curl wget http https nc ncat netcat socat ssh scp sftp rsync ftp telnet
crontab at mount umount reboot shutdown tee cp tar zip unzip 7z tmux screen psql mysql sqlite3 redis-cli
mongosh
"""
MAX_REMEMBERED_OPTIONS = 8
"""Most options for which a command is remembered by prefix and options; with more, only exactly as written."""
_REMEMBERED_OPTION = re.compile(
    r"-(?!-\Z).*|@.+|/[A-Za-z]+[:=].*|[A-Za-z_][\w.-]*[:+?!]?=(?!=).*", re.DOTALL
)
"""An option (`-x`, `/p:x`), a file with options (`@file`) or a setting (`CC=x`), but not a bare `--`."""
_COUNT_OPTION = re.compile(r"(-[nABCj]?)[0-9]+")
"""An option with a number of lines, results or jobs, as in `tail -20` and `make -j8`."""
_PROGRAMS_WITH_AT_NAMES = frozenset({"git", "npm", "pnpm", "yarn", "bun"})
"""Programs for which `@name` is a revision or a package, not a file with options."""


def _split_prefixes(text: str) -> list[str]:
    return [" ".join(each.split()) for each in text.split(",")]


_PREFIX_WORDS: Mapping[str, int] = dict.fromkeys(_TWO_WORD_PREFIXES.split(), 2) | dict.fromkeys(
    _split_prefixes(_THREE_WORD_PREFIXES), 3
)
_COMMANDS_WITHOUT_PREFIX = frozenset(_PROGRAMS_WITHOUT_PREFIX.split()) | frozenset(
    _split_prefixes(_SUBCOMMANDS_THAT_RUN_ANYTHING)
)


def always_allow_prefix(words: "CommandWords") -> "CommandWords | None":
    """Return the prefix that "always allow" covers for a command.

    None if only this exact command can be allowed.
    """
    from handtools.text.shell.hazards import find_hazards

    name, two = words[0], " ".join(words[:2])
    length = _PREFIX_WORDS.get(two, _PREFIX_WORDS.get(name, 1))
    taken = words[:length]
    short = len(taken) < length
    odd = "/" in name or any(word.startswith("-") or "/" in word for word in taken[1:])
    if short or odd or {name, two, " ".join(taken)} & _COMMANDS_WITHOUT_PREFIX or find_hazards(words):
        return None
    if len(remembered_options(words)) > MAX_REMEMBERED_OPTIONS:
        return None
    return taken


def remembered_options(words: "CommandWords") -> tuple[str, ...]:
    """Return the distinct options and settings in the words of a command, with counts replaced by `N`."""
    found = (
        _COUNT_OPTION.sub(r"\1N", word) if _COUNT_OPTION.fullmatch(word) else word
        for word in words[1:]
        if _REMEMBERED_OPTION.fullmatch(word)
        and not (word.startswith("@") and words[0] in _PROGRAMS_WITH_AT_NAMES)
    )
    return tuple(dict.fromkeys(found))
