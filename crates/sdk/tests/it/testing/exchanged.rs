//! One test with either CLI: all that changes is a word.

use std::error::Error;

use outrigger::Options;
use outrigger::testing::sim::peer::Exit;
use outrigger::testing::{RealCli, Simulated};

/// A program that has a session for each prompt.
async fn ask(options: impl Fn() -> Options, prompts: &[&str]) -> outrigger::Result<Vec<String>> {
    let mut answers = Vec::new();
    for prompt in prompts {
        let session = options().start().await?;
        answers.push(session.prompt(*prompt).await?.answer().await?.text().to_owned());
        session.close().await?;
    }
    Ok(answers)
}

const SCRIPT: &str = "
prompts:
  - {prompt: {contains: one}, steps: [say: first]}
  - {prompt: {contains: two}, steps: [say: second]}
  - {prompt: {contains: three}, steps: [say: third]}
";

macro_rules! sessions_play_one_script {
    ($name:ident, $cli:ident) => {
        #[tokio::test]
        async fn $name() -> Result<(), Box<dyn Error>> {
            let place = tempfile::tempdir()?;
            let file = place.path().join("script.yaml");
            std::fs::write(&file, SCRIPT)?;

            let cli = $cli::script_file(&file).await?;
            assert!(cli.report().is_none());
            let answers = ask(|| cli.options(), &["one", "two"]).await?;
            assert_eq!(answers, ["first", "second"]);
            let report = cli.report().expect("there were sessions");
            assert_eq!(report.exit, Some(Exit::Code(0)));
            assert!(report.received_kinds().contains(&"user".to_owned()));
            assert!(report.sent_kinds().contains(&"result/success".to_owned()));

            // Judged over all sessions, once it is asked.
            let flaws = cli.verdict().expect_err("there is a rule left").0;
            let places: Vec<&str> = flaws.iter().map(|flaw| flaw.place.as_str()).collect();
            assert_eq!(places, [format!("{}:5:5", file.display())]);
            assert_eq!(ask(|| cli.options(), &["three"]).await?, ["third"]);
            cli.verdict()?;

            let error = $cli::script_file(place.path().join("none.yaml")).await;
            let error = error.expect_err("there is no such file").to_string();
            assert!(error.contains("none.yaml: cannot be read"), "{error}");
            Ok(())
        }
    };
}

sessions_play_one_script!(sessions_of_the_simulated_cli_play_one_script, Simulated);
sessions_play_one_script!(sessions_of_the_real_cli_play_one_script, RealCli);

/// A failed assertion is a flaw of the session in which it stands, and counts in the verdict of all.
#[tokio::test(start_paused = true)]
async fn what_a_script_does_not_like_is_in_the_verdict_once() -> Result<(), Box<dyn Error>> {
    use outrigger::testing::sim::script::{Assert, Rule, Script};
    let script = Script::new()
        .rule(Rule::containing("one").assert(Assert::prompts(7)).say("first"))
        .rule(Rule::containing("two").say("second"));
    let cli = Simulated::script(script);
    assert_eq!(ask(|| cli.options(), &["one", "two"]).await?, ["first", "second"]);
    let flaws = cli.verdict().expect_err("one prompt came").0;
    let told: Vec<String> = flaws.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["prompts[0].steps[0]: expected 7 prompts, but 1 came"]);
    Ok(())
}

/// The real CLI is kept away from everything of the user's.
#[tokio::test]
async fn the_real_cli_has_a_place_of_its_own() -> Result<(), Box<dyn Error>> {
    let cli = RealCli::directives().await?;
    let root = cli.sandbox().path().to_owned();
    let prompt = "%tool Bash {\"command\": \"echo $HOME $CLAUDE_CONFIG_DIR $ANTHROPIC_API_KEY $PWD > seen.txt\", \"description\": \
                  \"look\"}\n%say looked";
    let options = || cli.options().permissions(outrigger::Policy::allow_list(["Bash"]));
    assert_eq!(ask(options, &[prompt]).await?, ["looked"]);
    let seen = std::fs::read_to_string(cli.sandbox().project().join("seen.txt"))?;
    let seen: Vec<&str> = seen.split_whitespace().collect();
    let text = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
    let (home, config) = (text(cli.sandbox().home()), text(cli.sandbox().config()));
    assert_eq!(seen[..2], [home, config]);
    assert!(!seen[2..].iter().any(|word| word.starts_with("sk-ant")));
    assert!(seen.last().is_some_and(|project| project.ends_with("/project")));
    assert!(cli.api().request_count() > 0);
    drop(cli);
    assert!(!root.exists(), "it is removed with the last handle");
    Ok(())
}

const TEAM: &str = "
prompts:
  - prompt: build
    steps:
      - call:
          tool: Agent
          input: {description: dig, prompt: go deeper, subagent_type: general-purpose, run_in_background: false}
      - say: It stands.
  - {prompt: go deeper, from: subagent, steps: [say: Deep enough.]}
  - {tool_result: {contains: Deep enough}, steps: [say: It stands well.]}
";

macro_rules! rules_of_subagents_and_results_count {
    ($name:ident, $cli:ident) => {
        /// The rules of subagents and of tool results are used like all others.
        #[tokio::test]
        async fn $name() -> Result<(), Box<dyn Error>> {
            let place = tempfile::tempdir()?;
            let file = place.path().join("team.yaml");
            std::fs::write(&file, TEAM)?;
            let cli = $cli::script_file(&file).await?;
            assert_eq!(cli.verdict().expect_err("nothing was asked").0.len(), 3);
            assert_eq!(
                ask(|| cli.options(), &["build"]).await?,
                ["It stands well."]
            );
            cli.verdict()?;
            Ok(())
        }
    };
}

rules_of_subagents_and_results_count!(the_simulated_cli_uses_rules_of_subagents_and_results, Simulated);
rules_of_subagents_and_results_count!(the_real_cli_uses_rules_of_subagents_and_results, RealCli);
