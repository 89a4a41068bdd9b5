//! One test for each trap into which programs that drive Claude Code were seen to fall, by the trap's name.
//!
//! The tests here are short, and in memory where that can show it. Each says which guard it is about; `cargo xtask guards` takes
//! guards out, one at a time, and sees the test fail. Behind some traps there is more to test than fits here, or it takes what only
//! another place has: those are in the table.
//!
//! | trap | test |
//! |---|---|
//! | stdin lifetime matrix | `stdin_lifetime_matrix`; more: `stdin_lives_as_long_as_the_run` |
//! | interim result | `interim_result` |
//! | foreign-origin result | `foreign_origin_result` |
//! | folded steer | `folded_steer` |
//! | stalled stream per phase | `stalled_stream_per_phase` |
//! | interrupt mid-call | `interrupt_mid_call` |
//! | duplex burst | elsewhere, with real pipes: `both_pipes_full_at_once_is_no_deadlock` |
//! | slow reader 10 k frames | `slow_reader_10k_frames` |
//! | unknown type, subtype, block, enum, field type | `unknown_type_subtype_block_enum_field_type` |
//! | lone surrogate | `lone_surrogate` |
//! | depth 5,000 | `depth_5000` |
//! | 80 MiB line | elsewhere, with a real process: `a_line_of_80_mib_comes_whole_by_default` |
//! | split UTF-8 at every byte | `split_utf8_at_every_byte` |
//! | noise lines | `noise_lines` |
//! | EOF mid-line | `eof_mid_line` |
//! | exit 0 without result | `exit_0_without_result` |
//! | SIGTERM-ignoring child and grandchild | `sigterm_ignoring_child_and_grandchild` |
//! | drop without runtime | `drop_without_runtime` |
//! | parent SIGKILL | elsewhere, with a program to kill: `a_killed_program_leaves_nothing` |
//! | argv property test | elsewhere, over generated values: `a_value_never_becomes_a_flag` |
//! | env allow-list | `env_allow_list`; more: `nothing_of_the_parent_but_the_list` |
//! | hook timeout or panic is deny | `hook_timeout_or_panic_is_deny` |
//! | cancel pending permission | `cancel_pending_permission` |
//! | late answer | elsewhere, with a handler that cannot be dropped: `a_handler_that_can_not_be_dropped_answers_nothing_that_was_withdrawn` |
//! | allow without input impossible | `allow_without_input_impossible` |
//! | question without handler | `question_without_handler` |
//! | MCP pending at first turn | elsewhere, with the other rules of waiting: `prompts_are_held_back_until_the_servers_have_connected` |
//! | resume from other cwd | `resume_from_other_cwd`; real: `what_cannot_be_resumed_says_why` |
//! | double resume | `double_resume`; real: `what_cannot_be_resumed_says_why` |
//! | id change on clear | `id_change_on_clear`; real: `clearing_begins_a_new_conversation` |
//! | kill mid-tool, then resume | elsewhere, with the real CLI: `a_session_that_was_killed_in_a_turn_goes_on_as_it_was` |
//! | corrupted transcript | `corrupted_transcript` |
//! | cumulative cost deltas | `cumulative_cost_deltas` |
//! | partial and final dedupe | `partial_and_final_dedupe` |
//! | subagent attribution | `subagent_attribution` |
//! | every inbound id answered once | `every_inbound_id_answered_once` |
//! | ask rules of a CLI that gives no reasons | `ask_rules_of_a_cli_that_gives_no_reasons` |
//! | ask rules and a command that cannot be read | `ask_rules_and_a_command_that_cannot_be_read` |
//! | rules taken away by an answer | `rules_taken_away_by_an_answer` |
//! | plan of an older CLI | `plan_of_an_older_cli` |
//! | rules in settings | `rules_in_settings` |
//! | rules that nobody handed over | `rules_that_nobody_handed_over` |
//! | rule behind layer | `rule_behind_layer` |
//! | ask rules beside a settings file | `ask_rules_beside_a_settings_file` |
//! | rules of every layer | `rules_of_every_layer` |
//! | ask rules are handed over | `ask_rules_are_handed_over`; real: `what_a_rule_wants_asked_is_asked` |
//! | read-only is the project | `read_only_is_the_project`; real: `what_the_cli_asks_about_in_spite_of_a_rule_is_refused` |
//! | rule within a rule | `rule_within_a_rule` |
//! | 10 k-turn soak | none as a test, it takes minutes: `cargo xtask soak` |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod input;
mod kit;
mod policies;
#[cfg(target_os = "linux")]
mod processes;
mod requests;
mod sessions;
mod turns;

use std::path::Path;

/// A table that names what is not there is worse than none.
#[test]
fn the_table_names_tests_that_exist() {
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
    let rows = include_str!("main.rs")
        .lines()
        .filter(|line| line.starts_with("//! | ") && !line.contains("| none"));
    let named: Vec<_> = rows
        .filter_map(|row| row.split(" | ").nth(2))
        .flat_map(|tests| tests.split('`').skip(1).step_by(2))
        .collect();
    assert!(named.len() > 35, "{}", named.len());
    for name in named {
        assert!(sources.contains(&format!("fn {name}(")), "there is no {name}");
    }
}
