//! `outrigger explain`: who would decide about a tool call.

use std::io::{self, IsTerminal as _, Write as _};

use outrigger::advice::reworded;
use outrigger::protocol::RawJson;
use outrigger::protocol::shared::JsonObject;

use crate::agent::{AgentArgs, usage};
use crate::ask::Responder;
use crate::config::ConfigArgs;
use crate::exit::{CommandResult, Status};
use crate::plain::plain;
use crate::screen::Screen;
use crate::words;

/// What `outrigger explain` takes: a call, and the options that `outrigger run` and `outrigger chat` have in common, so that the rules of
/// a command line can be tried out. Nothing is started, and nobody is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The tool, such as `Bash`.
    tool: String,
    /// The input of the call as JSON, such as `{"command": "git push"}`.
    #[arg(default_value = "{}")]
    input: String,

    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    _config: ConfigArgs,
}

/// Writes who may decide, in order, and why.
pub(crate) async fn run(args: Args) -> CommandResult {
    serde_json::from_str::<JsonObject>(&args.input)
        .map_err(|error| usage(format!("the input of {} is no JSON object: {error}", args.tool)))?;
    let input = RawJson::from_text(&args.input)?;
    let asking = if args.agent.no_ask {
        Responder::nobody()
    } else {
        Responder::at_terminal()
    };
    let screen = Screen::new(false, args.agent.verbose, args.agent.quiet);
    let options = args.agent.read()?.hosted(&asking, &screen);
    // A session that would not start decides nothing.
    let checked = options.check();
    checked.map_err(|error| usage(reworded(&error.to_string(), words::flag)))?;
    let explanation = options.explain(&args.tool, &input);
    let explanation = reworded(&explanation.to_string(), words::flag);
    let mut stdout = io::stdout().lock();
    if stdout.is_terminal() {
        write!(stdout, "{}", plain(&explanation))?;
    } else {
        write!(stdout, "{explanation}")?;
    }
    Ok(Status::Success)
}
