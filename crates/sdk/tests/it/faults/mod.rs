//! A CLI that misbehaves, as a real process, and what must come out all the same: nothing lost, nothing hanging, nothing left
//! behind, and an error with the evidence.
//!
//! Each test here runs on a runtime of one thread and on one of several, against `outrigger-sim-faulty`. What the real CLI can
//! be brought to is in `real/faults.rs` too.
//!
//! # What other clients were seen to fail at
//!
//! | fault | test |
//! |---|---|
//! | unknown message type | `an_unknown_message_type_is_kept` |
//! | unknown content block | `an_unknown_content_block_leaves_its_message_whole` |
//! | text line on stdout | `noise_between_the_lines_is_passed_over` |
//! | broken `{…` line | `a_broken_line_costs_nothing_but_itself` |
//! | line of 24 MB, by default | `a_line_of_24_mb_comes_whole_by_default`, real: `an_answer_of_12_mb_comes_whole` |
//! | non-ASCII text, 1000 messages | `text_cut_inside_its_characters_is_whole` |
//! | 2 MB on stderr | `much_on_stderr_stops_nothing_and_its_end_is_kept`, real: `a_cli_that_talks_on_stderr_is_drained` |
//! | death in mid-turn | `dying_in_mid_turn_is_an_error_with_the_evidence`, real: `a_kill_in_mid_turn_reaches_everybody` |
//! | 150 control requests in a row | `of_150_requests_in_a_row_each_gets_its_answer`, `of_150_questions_at_once_each_is_answered_once`, real: `requests_in_a_row_are_answered_and_the_turn_goes_on` |
//! | error answer to a control request | `an_error_answer_is_an_error` |
//! | question answered, right input | `the_handler_sees_the_input_and_is_answered_once`, real: `answers_to_a_permission_question` |
//! | question withdrawn | `a_question_that_is_withdrawn_is_never_answered`, `a_handler_that_can_not_be_dropped_answers_nothing_that_was_withdrawn`, real: `during_a_permission_question` |
//! | messages while a handler thinks | `messages_pass_while_a_handler_thinks` |
//! | question while 3000 messages wait unread | `a_question_is_answered_while_3000_messages_wait_unread`, real: `a_question_is_answered_while_thousands_of_messages_wait_unread` |
//! | late reader: memory and loss | `what_a_late_reader_does_not_take_does_not_fill_the_memory` |
//! | more than 10 MB in all | `more_than_10_mb_in_all_is_no_limit` |
//! | reading in `select!`, lines in two pieces | `reading_that_is_cancelled_between_two_pieces_loses_nothing` |
//! | one thread, slow reader | `a_reader_of_10000_frames_that_comes_late_misses_none`, `a_reader_that_blocks_its_thread_for_a_while_loses_nothing` |
//! | dropped without close | `dropping_without_close_leaves_nothing`, `dropping_without_a_runtime_leaves_nothing`, real: `dropped_without_close_leaves_nothing` |
//! | EOF and SIGTERM ignored at close | `ignoring_eof_and_sigterm_ends_in_a_kill_of_all` |
//!
//! # Traps: hangs, lost turns, wrong turn boundaries
//!
//! | trap | test |
//! |---|---|
//! | stdin closed too early | `stdin_lives_as_long_as_the_run`, real: `the_interim_answer_is_not_the_end_of_the_run` |
//! | a result is not the end | `an_interim_result_is_not_the_end_of_the_run`, real: `the_run_ends_after_the_last_of_several_agents` |
//! | results of somebody else's turn | `a_foreign_result_resolves_nobody`, `late_and_doubled_results_end_no_other_turn` |
//! | folded, merged, dropped prompts | `folded_and_merged_prompts_all_get_an_outcome`, `a_folded_prompt_that_no_result_names_ends_with_its_turn`, `dropped_prompts_end_without_a_result`, real: `steering_is_folded_into_the_running_turn` |
//! | the stream stalls | `a_stall_ends_the_turn_and_the_session_goes_on`, `a_stall_that_nothing_ends_is_killed_with_its_family`, `a_tool_and_a_question_may_take_longer`, in memory: `a_person_may_think_for_days_and_a_tool_may_run_as_long` |
//! | an interrupt that settles nothing | `interrupts_that_do_nothing_are_given_up`, `the_late_result_of_an_interrupted_turn_is_not_the_next_ones`, real: `while_the_answer_is_written` |
//! | interrupt, stop, close, kill are four things | real: `an_interrupt_ends_agents`, `a_background_agent_can_be_stopped`, `closing_lets_the_turn_finish`, `killing_leaves_nothing` |
//! | the process lives on after the result | `ignoring_eof_alone_ends_in_sigterm`, `an_orderly_end_leaves_nothing_of_the_group` |
//! | both pipes full | `both_pipes_full_at_once_is_no_deadlock`, `a_cli_that_stops_reading_blocks_nobody` |
//! | slow consumer | `a_reader_of_10000_frames_that_comes_late_misses_none`, `a_question_is_answered_while_3000_messages_wait_unread` |
//! | unknown type, block, value, field type | `an_unknown_message_type_is_kept`, `an_unknown_content_block_leaves_its_message_whole`, `odd_values_and_fields_lose_no_result` |
//! | lone surrogates, nesting of 5000 | `a_lone_surrogate_spoils_nothing`, `nesting_of_5000_is_passed_through` |
//! | a line longer than a buffer | `a_line_of_80_mib_comes_whole_by_default`, `more_than_10_mb_in_all_is_no_limit`, in memory: `a_request_on_a_line_over_the_cap_is_refused_and_its_neighbours_live` |
//! | split and mangled input | `a_character_may_be_cut_at_every_byte`, `several_frames_on_a_line_and_separators_inside_strings`, `a_last_line_without_its_end_counts`, `noise_between_the_lines_is_passed_over` |
//! | the end without a result | `exiting_with_0_without_a_result_is_an_error`, `what_was_written_before_the_end_is_read`, `dying_in_the_middle_of_a_line_loses_only_the_line` |
//! | a success that is none | `a_success_that_is_none_is_no_success`, unit: `the_truth_table` |
//! | no MCP tools in the first turn | none: nothing waits for servers yet; `mcp_status` says how far they are |
//! | control calls outside of a read loop | `requests_are_answered_whoever_reads` |
//! | `initialize` slow, or never answered | `requests_of_the_cli_before_initialize_is_answered_are_served`, `an_initialize_that_is_never_answered_leaves_nothing` |
//! | a dead child that nobody notices | `killed_behind_every_frame`, `exited_behind_every_frame`, `killed_in_the_middle_of_every_line`, `a_closed_stdout_is_the_end_of_a_session`, `a_closed_stdin_is_told_and_ends_it`, `a_grandchild_that_holds_the_pipes_does_not_hide_the_death` |
//! | control answers late, twice, never, to nobody | `a_request_that_is_never_answered_is_given_up_and_the_session_lives`, `a_second_answer_changes_nothing`, `answers_in_another_order_reach_whom_they_answer` |
//! | questions asked twice, or without their parts | `an_id_that_comes_again_is_answered_once_for_each_question`, `a_question_without_its_parts_is_refused` |
//!
//! # Traps: processes, memory, machine
//!
//! | trap | test |
//! |---|---|
//! | orphaned CLIs | `dropping_without_close_leaves_nothing`, `a_start_that_is_given_up_leaves_nothing`, `a_close_that_is_given_up_goes_on`, `what_cannot_start_says_why` |
//! | orphaned grandchildren | `ignoring_eof_and_sigterm_ends_in_a_kill_of_all`, `killing_leaves_nothing_of_the_family` |
//! | order of killing on Windows | none: these tests need a process table such as Linux's |
//! | memory of a session | `what_a_late_reader_does_not_take_does_not_fill_the_memory`, unit: `running_out_of_memory_and_crashing`; nothing samples the CLI's own memory |
//! | cold start, idle sessions, caps on how many | none: of a host or a pool, not of a session |
//! | subagent storms, parallel tools | none: limits are the CLI's own, and there are no tools in this program yet |
//! | arguments too long | unit: `what_is_long_leaves_the_command_line`, real: `long_agents_and_secrets_stay_off_the_command_line` |
//! | values that become flags | unit: `a_value_never_becomes_a_flag` |
//! | the binary is not found, or is another's | unit: `says_why_a_program_cannot_run`, `a_missing_directory_is_not_a_missing_program` |
//! | root in containers | unit: `root_may_not_skip_permissions_unless_in_a_sandbox` |
//! | another version than was built for | in memory: `the_version_is_known_and_an_untested_one_is_no_obstacle` |

mod asking;
pub(crate) mod boundaries;
mod control;
mod death;
mod ending;
mod flow;
mod lines;
mod stalls;
pub(crate) mod stand;
mod turns;

use std::path::Path;

/// A table that names what is not there is worse than none.
#[test]
fn the_tables_name_tests_that_exist() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = String::new();
    let mut directories = vec![here.join("src"), here.join("tests")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources += &std::fs::read_to_string(path).unwrap();
            }
        }
    }
    let tables = include_str!("mod.rs").lines();
    let rows = tables.filter(|line| line.starts_with("//! | ") && !line.contains("| none: "));
    let named: Vec<_> = rows
        .filter_map(|row| row.split(" | ").nth(2))
        .flat_map(|tests| tests.split('`').skip(1).step_by(2))
        .collect();
    assert!(named.len() > 60, "{}", named.len());
    for name in named {
        assert!(sources.contains(&format!("fn {name}(")), "there is no {name}");
    }
}
