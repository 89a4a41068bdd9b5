//! `outrigger sessions show`: a conversation, to be read.

use std::io::{self, Write};

use outrigger::sessions::{AgentId, Error, MessageOptions, Messages, SessionFile, Subagent};

use super::conversation_markdown;
use super::find::{Named, line};
use super::pager::Pager;
use super::talk::Talk;
use crate::agent::usage;
use crate::exit::{CommandResult, Failure};
use crate::paint::Paint;
use crate::plain::plain;

/// Show what was said in a session.
///
/// What is not meant as somebody's words is left out, except with --json and --full.
#[derive(Debug, clap::Args)]
pub(super) struct ShowSession {
    #[command(flatten)]
    named: Named,
    /// What was said in this subagent of the session instead: its id, or the beginning of it. `sessions agents` lists them.
    #[arg(long, value_name = "AGENT", value_parser = AgentId::new)]
    agent: Option<AgentId>,
    /// At most this many messages; 0 is all.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    limit: usize,
    /// Leave out this many messages at the beginning.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    offset: usize,
    /// The CLI's notes too, such as the boundaries of compactions.
    #[arg(long, conflicts_with = "agent")]
    system: bool,
    /// All of what tools gave back and of what the model thought, and what is not meant to be shown.
    #[arg(long)]
    full: bool,
    /// Write the conversation as Markdown.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Write a line of JSON for each message: what the TypeScript SDK calls `SessionMessage`.
    #[arg(long)]
    json: bool,
    /// Do not use a pager.
    #[arg(long)]
    no_pager: bool,
}

impl ShowSession {
    pub(super) fn run(self) -> CommandResult {
        let (_, file) = self.named.find()?;
        let options = MessageOptions::new()
            .limit(self.limit)
            .offset(self.offset)
            .include_system_messages(self.system);
        let mut messages = match &self.agent {
            Some(agent) => subagent(&file, agent)?.messages(&options)?,
            None => file.messages(&options)?,
        };
        tell_of_damage(&messages);
        Pager::show(self.no_pager || self.json, |out, paint| {
            if self.json {
                return json(&mut messages, out);
            }
            if self.markdown {
                return conversation_markdown::write(&file, &mut messages, self.full, out, &mut || Ok(()));
            }
            head(&file, out, paint)?;
            let mut talk = Talk::new(out, paint, self.full);
            messages.try_for_each(|message| talk.message(&message?))
        })
    }
}

/// Says which lines could not be read.
pub(super) fn tell_of_damage(messages: &Messages) {
    if let Some(first) = messages.damage().first() {
        let count = messages.damaged();
        eprintln!(
            "outrigger: {count} damaged lines were left out, the first: {}; `outrigger sessions repair` tells more",
            plain(&first.to_string())
        );
    }
}

/// Writes one message at a time: there may be more than fit the memory.
fn json(messages: &mut Messages, out: &mut dyn Write) -> Result<(), Failure> {
    for message in messages {
        serde_json::to_writer(&mut *out, &message?).map_err(io::Error::from)?;
        writeln!(out)?;
    }
    Ok(())
}

/// The subagent of this id, or the only one whose id begins so.
fn subagent(file: &SessionFile, agent: &AgentId) -> Result<Subagent, Failure> {
    let error = match file.subagent(agent) {
        Err(error @ Error::NoSubagent { .. }) => error,
        found => return Ok(found?),
    };
    let begins = |one: &Subagent| one.agent_id.as_str().starts_with(agent.as_str());
    let mut those = file.subagents().into_iter().filter(begins);
    match (those.next(), those.next()) {
        (Some(agent), None) => Ok(agent),
        (None, _) => {
            let hint = format!(
                "`outrigger sessions agents {}` lists those that there are",
                file.id
            );
            Err(anyhow::anyhow!("{error}; {hint}").into())
        }
        (Some(one), Some(other)) => Err(usage(format!(
            "several subagents could be meant by {:?}: {}, {}, …",
            plain(agent.as_str()),
            plain(one.agent_id.as_str()),
            plain(other.agent_id.as_str())
        ))),
    }
}

/// What is known of a session, each with its name.
type Facts = Vec<(&'static str, String)>;

/// The title, and what is known of the session.
pub(super) fn facts(file: &SessionFile) -> Result<(String, Facts), Failure> {
    let mut facts = vec![("session", file.id.to_string())];
    let mut title = "a session".to_owned();
    if let Some(info) = file.info()? {
        title = line(&info.summary, 200);
        // `HEAD` is what there is where there is no branch.
        let branch = info.git_branch.filter(|branch| branch != "HEAD");
        let known = [("directory", info.cwd), ("branch", branch), ("tag", info.tag)];
        let known = known.map(|(name, value)| (name, value.filter(|value| !value.is_empty())));
        facts.extend(
            known
                .into_iter()
                .filter_map(|(name, value)| Some((name, line(&value?, 400)))),
        );
        if info.archived == Some(true) {
            facts.push(("archived", "yes".to_owned()));
        }
    }
    if let Some(cost) = file.cost()? {
        facts.push(("cost", format!("${:.4}", cost.total_cost_usd)));
    }
    let agents: Vec<String> = file
        .subagents()
        .iter()
        .map(|agent| line(agent.agent_id.as_str(), 200))
        .collect();
    if !agents.is_empty() {
        facts.push(("subagents", agents.join(", ")));
    }
    Ok((title, facts))
}

/// Writes what is known of the session above what was said in it.
pub(super) fn head(file: &SessionFile, out: &mut dyn Write, paint: Paint) -> Result<(), Failure> {
    let (title, facts) = facts(file)?;
    writeln!(out, "{}", paint.bold(title))?;
    for (name, value) in facts {
        writeln!(out, "{}", paint.dim(format!("{name:<10} {value}")))?;
    }
    Ok(())
}
