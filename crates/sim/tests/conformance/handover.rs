//! Sessions that one CLI wrote and the other goes on with: what the model is told of them.

use std::error::Error;

use outrigger_sim::api::MessagesApi;
use outrigger_sim::claude::{Launch, Sandbox, executable};
use outrigger_sim::peer::agent::ModelRequest;
use outrigger_sim::peer::{Agent, Reply};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

struct Place {
    api: MessagesApi,
    sandbox: Sandbox,
}

impl Place {
    async fn new() -> Outcome<Self> {
        let place = Self {
            api: MessagesApi::builder().start().await?,
            sandbox: Sandbox::new()?,
        };
        place.sandbox.write("x.txt", "a secret\n")?;
        Ok(place)
    }

    /// One turn of a CLI. Gives the id of its session.
    async fn turn(&self, executable: &std::path::Path, flags: &[&str], prompt: &str) -> Outcome<String> {
        let launch =
            Launch::new(executable, &self.sandbox, &self.api.base_url()).env("OUTRIGGER_SIM_REAL_TOOLS", "1");
        let launch = flags.iter().fold(launch, |launch, flag| launch.arg(*flag));
        let mut claude = launch.spawn()?;
        claude.initialize().await?;
        claude.prompt(prompt).await?;
        let result = claude.result().await?;
        assert_eq!(result.value["is_error"], false, "{}", result.value);
        claude.finish().await?;
        Ok(result.value["session_id"].as_str().unwrap_or_default().to_owned())
    }

    /// A turn of the simulator in this process. Gives what its model was asked.
    async fn simulated_turn(&self, session: &str, prompt: &str) -> Outcome<(ModelRequest, Vec<Value>)> {
        let (sender, asked) = std::sync::mpsc::channel();
        let agent = Agent::builder()
            .cwd(self.sandbox.project())
            .home(self.sandbox.home().to_string_lossy())
            .config_dir(self.sandbox.config())
            .resume(session)
            .brain(move |ask: &ModelRequest| {
                let _ = sender.send(ask.clone());
                Reply::say("between the two")
            });
        let (mut client, running) = agent.spawn_in_memory();
        let message = json!({"role": "user", "content": prompt});
        let line = json!({"type": "user", "message": message, "parent_tool_use_id": null, "session_id": ""});
        client.stdin.write_all(format!("{line}\n").as_bytes()).await?;
        drop(client.stdin);
        let mut said = String::new();
        client.stdout.read_to_string(&mut said).await?;
        running.exit().await;
        let lines = said.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok((asked.recv()?, lines))
    }

    /// What the real CLI has told the API last, as one text.
    fn told(&self) -> String {
        let requests = self.api.requests();
        let last = requests
            .iter()
            .rev()
            .find(|request| !request.messages().is_empty());
        last.map_or_else(String::new, |request| json!(request.messages()).to_string())
    }
}

const FIRST: &str =
    "what is in the file?\n%tool Read {\"file_path\": \"x.txt\"}\n%say there is a secret in it";

#[tokio::test]
async fn the_real_cli_goes_on_with_what_the_simulator_wrote() -> Outcome {
    let place = Place::new().await?;
    let simulator = std::path::Path::new(env!("CARGO_BIN_EXE_outrigger-sim"));
    let session = place.turn(simulator, &[], FIRST).await?;
    assert!(place.api.requests().is_empty(), "the simulator asks nobody");
    let real = executable().await?;
    let resumed = place
        .turn(&real, &["--resume", &session], "%say and I know it")
        .await?;
    assert_eq!(resumed, session);
    let told = place.told();
    for known in [
        "what is in the file?",
        "tool_use",
        "a secret",
        "there is a secret in it",
        "and I know it",
    ] {
        assert!(told.contains(known), "{known:?} is not in {told}");
    }
    // And the other way round, with what the real one has added.
    let (ask, _) = place.simulated_turn(&session, "still there?").await?;
    assert!(ask.resumed);
    // Two prompts with their answers, and the call with its result.
    assert_eq!(ask.history, 6);
    Ok(())
}

#[tokio::test]
async fn the_simulator_goes_on_with_what_the_real_cli_wrote() -> Outcome {
    let place = Place::new().await?;
    let real = executable().await?;
    let session = place.turn(&real, &[], FIRST).await?;
    let (ask, lines) = place.simulated_turn(&session, "are you another one?").await?;
    assert!(ask.resumed);
    assert_eq!(ask.history, 4);
    let init = lines.iter().find(|line| line["subtype"] == "init");
    assert_eq!(init.map(|init| &init["session_id"]), Some(&json!(session)));
    // The real one takes over again and knows all of it.
    place
        .turn(&real, &["--resume", &session], "%say I am back")
        .await?;
    let told = place.told();
    for known in [
        "what is in the file?",
        "there is a secret in it",
        "are you another one?",
        "between the two",
        "I am back",
    ] {
        assert!(told.contains(known), "{known:?} is not in {told}");
    }
    Ok(())
}
