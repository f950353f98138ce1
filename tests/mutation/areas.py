"""What is mutated, and which suites should notice: fast ones, since each mutant runs them anew."""

from dataclasses import dataclass

UNIT, RUNTIME = "tests/unit", "tests/unit/runtime"


@dataclass(frozen=True, slots=True)
class Area:
    """Modules (below handtools) that do one thing, and the tests that say what it is."""

    modules: tuple[str, ...]
    suites: tuple[str, ...]


AREAS = {
    "matching": Area(
        (
            "tools.editing.replacement",
            "tools.editing.exact_replacement",
            "tools.editing.normalized_lines",
            "tools.editing.indentation",
            "tools.editing.already_applied",
            "tools.editing.omitted_code",
            "tools.editing.old_string_repair",
        ),
        (
            f"{UNIT}/tools/editing",
            f"{UNIT}/tools/test_edit.py",
            "tests/property/test_matching.py",
            "tests/scenario",
        ),
    ),
    "patching": Area(
        ("tools.editing.patch_parser", "text.patch_model"),
        (f"{UNIT}/tools/editing", f"{UNIT}/tools/test_patch.py", "tests/property/test_patching.py"),
    ),
    "placing": Area(
        ("tools.editing.hunk_placement",),
        (
            f"{UNIT}/tools/editing",
            f"{UNIT}/tools/test_patch.py",
            "tests/property/test_patching.py",
            "tests/scenario",
        ),
    ),
    "policy": Area(
        (
            "runtime.policy",
            "runtime.policy.change_rules",
            "runtime.policy.private_paths",
            "runtime.policy.protected_paths",
            "runtime.policy.project_policy",
        ),
        (
            f"{RUNTIME}/policy",
            f"{RUNTIME}/test_policy.py",
            f"{UNIT}/configuration",
            "tests/property/test_tightening.py",
            f"{RUNTIME}/guards",
        ),
    ),
    "rules": Area(
        ("runtime.policy.rules", "runtime.policy.command_rules"),
        (
            f"{RUNTIME}/policy",
            f"{RUNTIME}/test_policy.py",
            f"{UNIT}/configuration",
            f"{RUNTIME}/approval/test_questions.py::test_a_rule_about_a_program_does_not_speak_for_what_took_its_name",
        ),
    ),
    "approval": Area(
        ("runtime.approval.gate", "runtime.approval.preview"),
        (
            f"{RUNTIME}/approval",
            f"{RUNTIME}/policy/test_command_rules.py",
            f"{RUNTIME}/test_executor.py",
            f"{RUNTIME}/guards",
        ),
    ),
    "guard": Area(
        ("runtime.guards.files", "runtime.guards.commands", "runtime.guards.search"),
        (
            f"{RUNTIME}/guards",
            f"{RUNTIME}/test_executor.py",
            f"{RUNTIME}/approval",
            f"{RUNTIME}/policy/test_command_rules.py",
            f"{RUNTIME}/test_after_call.py",
            f"{RUNTIME}/test_recovery.py",
            f"{RUNTIME}/test_undo.py",
            f"{UNIT}/tools/test_bash.py",
            f"{UNIT}/tools/test_edit.py",
            f"{UNIT}/tools/test_find.py",
            f"{UNIT}/tools/test_grep.py",
            f"{UNIT}/tools/test_jobs.py",
            f"{UNIT}/tools/test_list.py",
            f"{UNIT}/tools/test_patch.py::test_an_undo_takes_back_a_mode_too",
            f"{UNIT}/tools/test_patch.py::test_modes_follow_the_patch_and_moves_keep_theirs",
            f"{UNIT}/tools/test_read.py",
            f"{UNIT}/tools/test_skill.py",
            f"{UNIT}/tools/test_text_editor.py",
            f"{UNIT}/tools/test_write.py",
            "tests/e2e/test_command_answers.py::test_a_command_whose_changes_wait_shows_its_output_and_why",
            "tests/e2e/test_commands.py::test_a_million_lines_can_be_read_by_page_and_searched",
            "tests/e2e/test_commands.py::test_an_output_that_is_gone_is_said_to_be",
            "tests/e2e/test_git_commands.py::test_tracked_fixtures_are_read_and_changed_like_any_file",
            "tests/e2e/test_git_commands.py::test_what_a_command_makes_itself_lands_and_is_its_own_until_somebody_changes_it",
            "tests/e2e/test_job_capture.py",
            "tests/e2e/test_large_edits.py::test_a_hard_link_that_is_broken_is_told",
            "tests/e2e/test_moved.py",
        ),
    ),
    "journal": Area(
        (
            "runtime.journal",
            "runtime.journal.blobs",
            "runtime.journal.calls",
            "runtime.journal.change_entries",
            "runtime.journal.database",
            "runtime.journal.retention",
        ),
        (
            f"{RUNTIME}/test_journal.py",
            f"{RUNTIME}/test_journal_log.py",
            f"{RUNTIME}/test_recovery.py",
            f"{RUNTIME}/test_undo.py",
            f"{UNIT}/record/test_session_feed.py",
            f"{UNIT}/tools/test_undo.py",
            "tests/property/test_splices.py",
        ),
    ),
    "undo": Area(
        ("runtime.undo",),
        (
            f"{RUNTIME}/test_undo.py",
            f"{UNIT}/tools/test_undo.py",
            f"{RUNTIME}/test_review.py",
            "tests/e2e/test_transaction.py::test_one_file_of_a_folder_that_a_command_removed_comes_back_alone",
            "tests/e2e/test_undo_of_parts.py",
            f"{UNIT}/tools/test_text_editor.py",
            "tests/e2e/test_large_edits.py",
            "tests/property/test_undo_history.py",
            "tests/e2e/test_git_commands.py::test_git_works_without_a_question_lands_and_is_undone_byte_for_byte[commit]",
            "tests/e2e/test_git_commands.py::test_objects_stay_where_somebody_may_have_built_on_them",
            "tests/e2e/test_git_commands.py::test_a_repository_that_a_command_made_and_somebody_used_since_is_kept_whole",
            "tests/e2e/test_git_commands.py::test_a_branch_that_somebody_moved_since_is_a_conflict_and_all_of_the_repository_stays",
        ),
    ),
    "resolving": Area(
        ("host.files.path_resolution",),
        (
            f"{UNIT}/host/files/test_local_files.py",
            f"{UNIT}/host/files/test_path_resolution.py",
            "tests/contract/test_files_reading.py",
            "tests/e2e/test_several_folders.py::test_the_top_of_the_workspace_are_its_folders",
            "tests/e2e/test_several_folders.py::test_a_path_begins_with_the_name_of_its_folder_or_is_absolute",
            "tests/e2e/test_several_folders.py::test_nothing_is_written_beside_the_folders",
            "tests/e2e/test_several_folders.py::test_no_path_leads_into_a_folder_that_is_kept_apart",
        ),
    ),
}
