//! `outrigger approve`.

use std::io::{self, IsTerminal as _};

use outrigger::permissions::{Answers, PermissionRequest, PermissionResult, QuestionRequest};
use outrigger::protocol::{Frame, RawJson};
use outrigger_host_client::{Approval, ApprovalFilter, ApprovalKind, ApprovalState, Error, HostClient};
use serde_json::json;

use super::{HostArgs, MOST_NAMED, NAMES, begins, failure, named};
use crate::agent::usage;
use crate::ask::Responder;
use crate::exit::{CommandResult, Failure, Status};
use crate::paint::Paint;
use crate::plain::plain;
use crate::screen::{note, target};
use crate::sessions::Beginnings;
use crate::sessions::table::{self, Column, cell};
use crate::time;

/// Answer what sessions of a host ask: tool calls, questions, plans, forms. Without an approval they are listed.
///
/// The first answer counts, whoever gives it. An approval is named by its id, or by the beginning of its id. Without an answer on the command line it is
/// shown, and asked for at the terminal.
#[derive(Debug, clap::Args)]
#[command(after_help = NAMES)]
pub(crate) struct Approve {
    /// The approval that is answered.
    approval: Option<String>,
    /// Lets the call run, or the plan be carried out.
    #[arg(long, group = "decision", requires = "approval")]
    allow: bool,
    /// Deny the call, or decline the form; the model reads the reason.
    #[arg(
        long,
        value_name = "REASON",
        num_args = 0..=1,
        default_missing_value = "",
        group = "decision",
        requires = "approval"
    )]
    deny: Option<String>,
    /// Answers a question of the model: numbers of choices, separated by commas, or own words; nothing skips it. Once for each question, in their
    /// order.
    #[arg(long, value_name = "WORDS", group = "decision", requires = "approval")]
    answer: Vec<String>,
    /// The whole answer for the CLI as JSON, such as `{"action":"accept","content":{"name":"x"}}` for a form.
    #[arg(long, value_name = "JSON", group = "decision", requires = "approval")]
    reply: Option<String>,
    /// List the approvals of this session only.
    #[arg(long, value_name = "SESSION", conflicts_with = "approval")]
    session: Option<String>,
    /// List approvals that are decided, too.
    #[arg(short, long, conflicts_with = "approval")]
    all: bool,
    /// Writes approvals as JSON, as the host wrote them.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

impl Approve {
    pub(crate) async fn run(self) -> CommandResult {
        let client = self.host.client()?;
        let Some(name) = &self.approval else {
            return self.list(&client).await;
        };
        let approval = meant(&client, name).await?;
        let answer = match self.answer_to(&approval)? {
            Some(answer) => answer,
            None => ask_person(&approval).await?,
        };
        match client.decide(&approval.id, &answer).await {
            Ok(decided) => {
                if self.json {
                    use std::io::Write as _;
                    writeln!(io::stdout(), "{}", decided.raw.get())?;
                } else {
                    note_state(&decided);
                }
                Ok(Status::Success)
            }
            Err(error) => Err(too_late(error)),
        }
    }

    async fn list(&self, client: &HostClient) -> CommandResult {
        let mut filter = match self.all {
            true => ApprovalFilter::default(),
            false => ApprovalFilter::pending(),
        };
        if let Some(name) = &self.session {
            filter = filter.of_session(named(client, name).await?.id);
        }
        let approvals = client.all_approvals(&filter).await.map_err(failure)?;
        let ids = Beginnings::among(approvals.iter().map(|approval| approval.id.clone()));
        let sessions = Beginnings::among(approvals.iter().map(|approval| approval.session_id.clone()));
        table::show(&approvals, self.json, true, &COLUMNS, |approval| {
            let opened = i64::try_from(approval.opened_at).unwrap_or(i64::MAX);
            vec![
                cell(Some(ids.shortest(&approval.id))),
                cell(Some(approval.state.as_str())),
                cell(Some(sessions.shortest(&approval.session_id))),
                time::ago(opened).trim_end_matches(" ago").to_owned(),
                cell(Some(&summary(approval))),
            ]
        })
    }

    /// The answer of the command line; `None` if there is none.
    fn answer_to(&self, approval: &Approval) -> Result<Option<RawJson>, Failure> {
        let is_form = matches!(approval.kind, ApprovalKind::Form);
        let is_dialog = matches!(approval.kind, ApprovalKind::Dialog);
        if let Some(reply) = &self.reply {
            let reply = RawJson::from_text(reply.as_str());
            return reply
                .map(Some)
                .map_err(|error| usage(format!("--reply is no JSON: {error}")));
        }
        if self.allow {
            if is_form || is_dialog || matches!(approval.kind, ApprovalKind::Question) {
                return Err(usage(format!(
                    "it asks for more than a yes ({}): answer it by --answer or --reply, or at the terminal",
                    approval.kind
                )));
            }
            return Ok(Some(json!({"behavior": "allow"}).into()));
        }
        if let Some(reason) = &self.deny {
            let reason = match reason.trim() {
                "" => "a person denied it",
                reason => reason,
            };
            return Ok(Some(if is_form {
                json!({"action": "decline"}).into()
            } else if is_dialog {
                json!({"behavior": "cancelled"}).into()
            } else {
                json!({"behavior": "deny", "message": reason}).into()
            }));
        }
        if self.answer.is_empty() {
            return Ok(None);
        }
        let request = frame(approval).and_then(|frame| PermissionRequest::from_frame(&frame).ok());
        let Some(asked) = request.as_ref().and_then(QuestionRequest::of) else {
            return Err(usage(
                "it is no question of the model: --answer is for those".to_owned(),
            ));
        };
        answers(&asked, &self.answer).map(Some)
    }
}

/// The answers in their order.
fn answers(asked: &QuestionRequest, given: &[String]) -> Result<RawJson, Failure> {
    if given.len() != asked.questions.len() {
        return Err(usage(format!(
            "there are {} questions, and {} times --answer",
            asked.questions.len(),
            given.len()
        )));
    }
    let mut answers: Answers = asked.answers();
    for (number, words) in given.iter().enumerate() {
        let words = words.trim();
        let numbers: Option<Vec<usize>> = words
            .split(',')
            .map(|choice| choice.trim().parse().ok())
            .collect();
        answers = match numbers {
            _ if words.is_empty() => answers.skip(number),
            // No choice has the number 0, or one that is beyond all of them.
            Some(numbers) => answers.choose(
                number,
                numbers
                    .into_iter()
                    .map(|choice| choice.checked_sub(1).unwrap_or(usize::MAX)),
            ),
            None => answers.write(number, words),
        }
        .map_err(|error| usage(error.to_string()))?;
    }
    Ok(RawJson::encode(&PermissionResult::from(answers))?)
}

/// Asks the person at the terminal.
async fn ask_person(approval: &Approval) -> Result<RawJson, Failure> {
    if approval.state != ApprovalState::Pending {
        return Err(was_decided(approval));
    }
    if !io::stdin().is_terminal() {
        return Err(usage(
            "there is no terminal to ask at: give --allow, --deny, --answer or --reply".to_owned(),
        ));
    }
    let request = frame(approval)
        .ok_or_else(|| usage("its request cannot be read here; answer it by --reply".to_owned()))?;
    let answer = Responder::at_terminal().about(&request).await;
    answer.ok_or_else(|| {
        Failure::new(
            Status::Failed,
            anyhow::anyhow!("it was not answered, and is still open"),
        )
    })
}

/// The request of an approval.
pub(super) fn frame(approval: &Approval) -> Option<Frame> {
    let mut frames = Frame::from_line(approval.request.get());
    (frames.len() == 1).then(|| frames.pop()).flatten()
}

/// What an approval is about, in a line.
pub(super) fn summary(approval: &Approval) -> String {
    let request = frame(approval).and_then(|frame| PermissionRequest::from_frame(&frame).ok());
    match (request, approval.tool_name.as_deref()) {
        (Some(request), _) => match QuestionRequest::of(&request) {
            Some(asked) => {
                let questions: Vec<&str> = asked
                    .questions
                    .iter()
                    .map(|asked| asked.question.as_str())
                    .collect();
                format!("question: {}", questions.join(" / "))
            }
            None => format!("{}: {}", request.tool_name, target(&request.input)),
        },
        (None, Some(tool)) => format!("{} {tool}", approval.kind),
        (None, None) => approval.kind.to_string(),
    }
}

/// The approval that is meant, which has to be pending unless it is named by its whole id.
async fn meant(client: &HostClient, name: &str) -> Result<Approval, Failure> {
    if super::is_id(name) {
        return client.approval(name).await.map_err(failure);
    }
    let pending = client
        .all_approvals(&ApprovalFilter::pending())
        .await
        .map_err(failure)?;
    let mut meant: Vec<Approval> = pending
        .into_iter()
        .filter(|approval| begins(&approval.id, name))
        .collect();
    match meant.len() {
        1 => Ok(meant.remove(0)),
        0 => Err(Failure::new(
            Status::Failed,
            anyhow::anyhow!(
                "nothing that is pending has an id that begins with {:?}: it may have been decided, and its whole id tells by whom; `outrigger approve` lists what is pending",
                plain(name)
            ),
        )),
        count => {
            let mut message = format!("{count} approvals could be meant by {:?}:", plain(name));
            for approval in meant.iter().take(MOST_NAMED) {
                message.push_str(&format!(
                    "\n  {}  {}",
                    plain(&approval.id),
                    plain(&summary(approval))
                ));
            }
            Err(usage(message))
        }
    }
}

/// Who decided first, if that is what the error is.
fn too_late(error: Error) -> Failure {
    match error.decided_before() {
        Some(approval) => was_decided(&approval),
        None => failure(error),
    }
}

fn was_decided(approval: &Approval) -> Failure {
    let by = approval
        .decided_by
        .as_ref()
        .map(|by| format!(", by {}", plain(by)))
        .unwrap_or_default();
    Failure::new(
        Status::Failed,
        anyhow::anyhow!("it is {} already{by}; the answer was not used", approval.state),
    )
}

fn note_state(approval: &Approval) {
    let said = format!("{}: {}", approval.state, summary(approval));
    note(&said, Paint::on(&io::stderr()));
}

const COLUMNS: [Column; 5] = [
    Column {
        look: |paint, text| paint.cyan(text),
        ..Column::new("APPROVAL")
    },
    Column {
        look: |paint, text| match text {
            "pending" => paint.yellow(text),
            _ => paint.dim(text),
        },
        spared: Some(2),
        ..Column::new("STATE")
    },
    Column {
        spared: Some(3),
        ..Column::new("SESSION")
    },
    Column {
        spared: Some(1),
        ..Column::new("AGE")
    },
    Column {
        least: 20,
        ..Column::new("ASKS FOR")
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn approval(kind: &str, request: &serde_json::Value) -> Approval {
        let document = json!({
            "id": "a", "session_id": "s", "kind": kind, "state": "pending",
            "request": {"type": "control_request", "request_id": "r", "request": request},
        });
        serde_json::from_str(&document.to_string()).unwrap()
    }

    #[test]
    fn an_approval_is_told_by_what_it_asks_for() {
        let call = json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "make"}});
        assert_eq!(summary(&approval("tool", &call)), "Bash: make");
        let form = json!({"subtype": "elicitation"});
        assert_eq!(summary(&approval("form", &form)), "form");
    }

    #[test]
    fn answers_choose_or_are_words_and_have_to_be_as_many_as_the_questions() {
        let input = json!({"questions": [
            {"question": "Which?", "header": "W", "multiSelect": false, "options": [
                {"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]},
            {"question": "And?", "header": "A", "multiSelect": true, "options": [
                {"label": "One", "description": "1"}, {"label": "Two", "description": "2"}]},
        ]});
        let asked = json!({"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": input});
        let approval = approval("question", &asked);
        let request = PermissionRequest::from_frame(&frame(&approval).unwrap()).unwrap();
        let asked = QuestionRequest::of(&request).unwrap();
        let given = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            answers(&asked, &words)
                .map(|answer| answer.to_value().unwrap()["updatedInput"]["answers"].clone())
        };
        assert_eq!(
            given(&["2", "1, 2"]).unwrap(),
            json!({"Which?": "Blue", "And?": "One, Two"})
        );
        assert_eq!(given(&["green", ""]).unwrap(), json!({"Which?": "green"}));
        for wrong in [&["2"][..], &["3", "1"], &["1,2", "1"], &["0", "1"]] {
            assert!(given(wrong).is_err(), "{wrong:?}");
        }
    }
}
