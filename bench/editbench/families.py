"""Every family by name: what must apply and what must be refused, and how many of each."""

import random
from collections.abc import Callable

from bench.editbench import damages, hazards
from bench.editbench.damages import Draft, Family
from bench.editbench.edits import Scene

APPLY: dict[str, Family] = {
    name: getattr(damages, name)
    for name in (
        "exact exact_special exact_fragment first_trimmed last_cut both_stripped whole_lines "
        "trailing_lost trailing_added blank_lines_indented tabs_to_spaces spaces_to_tabs dedented overindented "
        "underindented wrong_width inner_space quote_style smart_signs plain_signs odd_spaces odd_spaces_in_file "
        "zero_width decomposed typo_kept typo_healed typo_changed escaped_json escaped_newlines escaped_quotes "
        "entities line_numbers fence elision diff_markers blank_missing blank_extra blank_edges crlf_file cr_file "
        "crlf_arguments crlf_mixed bom no_final_newline foreign_bytes"
    ).split()
}
APPLY |= {
    name: getattr(hazards, name)
    for name in ("several", "near_twin", "hinted", "drift_small", "stale_context")
}
REFUSE: dict[str, Family] = {
    name: getattr(hazards, name)
    for name in (
        "deleted deleted_decoy literal_changed word_changed operator_changed twin_exact twin_indent twin_quotes sibling "
        "inside_word drift_far other_file line_missing line_extra lines_swapped symbol_misspelt number_misspelt "
        "plural case_changed omission same elision_one_sided stale_conflict nesting_changed"
    ).split()
}
PER_APPLY, PER_REFUSE = 104, 66
Checked = Callable[[random.Random, Scene], Draft | None]
