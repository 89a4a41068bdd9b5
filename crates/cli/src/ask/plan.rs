//! Has the person at the terminal approve plans.

use outrigger::permissions::{PlanReply, PlanRequest};

use super::{NO_ANSWER, Person, by_subagent};

const CHOICES: &str =
    "Carry it out? [y]es, yes and accept [e]dits, [n]o (keep planning), or what to change: ";

/// What a line means.
#[derive(Debug, PartialEq, Eq)]
enum PlanChoice {
    Approve,
    AcceptEdits,
    KeepPlanning(String),
    Again,
}

pub(super) async fn decide(person: &Person, request: &PlanRequest) -> PlanReply {
    let Some(attention) = person.attention().await else {
        return PlanReply::KeepPlanning("the terminal can't be read, so nobody approves".to_owned());
    };
    let mut text = described(request);
    let reply = loop {
        text.push_str(CHOICES);
        let Some(answer) = attention.ask(&text).await else {
            break PlanReply::KeepPlanning(NO_ANSWER.to_owned());
        };
        match choice(&answer) {
            PlanChoice::Approve => break PlanReply::approve(),
            PlanChoice::AcceptEdits => break PlanReply::approve_and_accept_edits(),
            PlanChoice::KeepPlanning(why) => break PlanReply::KeepPlanning(why),
            PlanChoice::Again => text.clear(),
        }
    };
    attention.done();
    reply
}

fn described(request: &PlanRequest) -> String {
    let who = by_subagent(request.request.agent_id.as_ref());
    match &request.plan {
        Some(plan) => format!("\nThe plan{who}:\n\n{}\n\n", plan.trim_end()),
        None => format!("\nThe model wants to carry out its plan{who}, but has written none down.\n"),
    }
}

fn choice(answer: &str) -> PlanChoice {
    match answer.to_ascii_lowercase().as_str() {
        "y" | "yes" => PlanChoice::Approve,
        "e" | "edits" => PlanChoice::AcceptEdits,
        "n" | "no" => PlanChoice::KeepPlanning(
            "the person at the terminal does not want this carried out yet".to_owned(),
        ),
        "" => PlanChoice::Again,
        _ => PlanChoice::KeepPlanning(format!(
            "the person at the terminal wants the plan changed: {}",
            super::permission::words(answer)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_approves() {
        assert_eq!(choice("Y"), PlanChoice::Approve);
        assert_eq!(choice("yes"), PlanChoice::Approve);
        assert_eq!(choice("e"), PlanChoice::AcceptEdits);
        assert_eq!(choice(""), PlanChoice::Again);
        for no in ["n", "no", "n: smaller steps", "yes, but smaller steps", "ye"] {
            assert!(matches!(choice(no), PlanChoice::KeepPlanning(_)), "{no}");
        }
        let PlanChoice::KeepPlanning(why) = choice("n: smaller steps") else {
            unreachable!()
        };
        assert!(why.ends_with("changed: smaller steps"), "{why}");
    }
}
