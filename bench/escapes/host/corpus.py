"""The corpus of host-side attacks as figures: all of it, one family, or the spread that CI runs."""

import argparse
import sys
import time
from collections.abc import Iterator

from bench.escapes.host.attempts import Named, attempt, known
from bench.figures import Figure

FAMILY = "host"
HELD_OUT = {"heldout": "held-out attempts", "heldout_second": "held-out attempts, second round,"}
"""The rounds of held-out attacks; each has one row of its own, without a goal."""
QUICK_SECONDS = 35.0
"""In CI no attack is begun after so long."""
QUICK = (
    "project_policy/rule_that_is_an_exception", "git/promisor_over_ssh",
    "submodules/name_that_leads_through_the_packs", "programs/planted_programs_on_the_first_call",
    "git_objects/pack_with_the_index_of_another", "landing/links_with_protected_names",
    "git_settings/fetch_over_the_persons_branches", "skills/skill_that_is_a_link",
    "configured_programs/hook_in_a_folder_of_the_workspace", "approvals/folder_changes_before_the_answer",
    "late_private_files/folder_whose_times_were_set_back", "links/link_to_a_private_file",
    "late_private_files/made_while_a_job_runs", "command_rules/options_before_the_subcommand",
    "fleet_templates/tarball_with_long_links", "landing/repository_in_two_places",
    "fleet_templates/commit_with_a_filter", "git/bare_at_the_root", "workspace_log/states_that_lead_out",
    "walks/sixty_private_files", "approved_files/script_that_changes", "media/pages_without_end",
    "owners/outputs_of_another_token",
)  # fmt: skip
"""One or two of most families. It closes the gate of CI, so an attack comes here when what it found is mended."""


def figures(options: argparse.Namespace) -> Iterator[Figure]:
    """How many attacks were stopped, whole and by family."""
    chosen, deadline = _chosen(options), time.monotonic() + QUICK_SECONDS
    stopped: dict[str, int] = {}
    tried: dict[str, int] = {}
    for each in chosen:
        if options.quick and time.monotonic() > deadline:
            break
        verdicts = attempt(each.attack)
        family = each.held_out or each.family
        tried[family] = tried.get(family, 0) + 1
        stopped[family] = stopped.get(family, 0) + (not verdicts)
        if options.told or verdicts:
            print(f"host: {each.title:<56} {'; '.join(verdicts) or 'stopped'}", file=sys.stderr)
    held_out = {name: tried.pop(name) for name in HELD_OUT if name in tried}
    if not options.quick:
        for family, count in tried.items():
            yield _figure(f"host, {family}: attempts stopped, of {count}", stopped[family], count)
    if tried:
        total = sum(tried.values())
        yield _figure(f"host: attempts stopped, of {total}", sum(map(stopped.__getitem__, tried)), total)
    for name, count in held_out.items():
        yield _figure(f"host: {HELD_OUT[name]} stopped, of {count}", stopped[name], None)


def _chosen(options: argparse.Namespace) -> list[Named]:
    attacks = known()
    if options.attack:
        return [each for each in attacks if any(each.title.startswith(word) for word in options.attack)]
    if options.quick:
        titled = {each.title: each for each in attacks}
        return [titled[title] for title in QUICK if title in titled]
    return attacks


def _figure(name: str, value: int, goal: int | None) -> Figure:
    return Figure(name=name, value=value, unit="attempts", goal=goal, better="higher")
