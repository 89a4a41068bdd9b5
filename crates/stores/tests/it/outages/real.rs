//! The real CLI, and a PostgreSQL that is stopped and started under it.

use std::sync::Arc;
use std::time::Duration;

use outrigger::options::{Auth, Secret};
use outrigger::{Agent, Options, Session};
use outrigger_sessions::store::SessionStore;
use outrigger_sim::api::{ApiRequest, MessagesApi};
use outrigger_sim::claude::{Sandbox, executable};
use outrigger_stores::PostgresStore;

use super::trial::{Rng, again, start};
use crate::servers::postgres;

/// Longer than a turn takes on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(120);

async fn say(session: &Session, word: &str) {
    let turn = async {
        let mut turn = session.prompt(format!("%say {word}").as_str()).await.unwrap();
        assert!(turn.outcome().await.unwrap().is_success(), "{word}");
    };
    tokio::time::timeout(PATIENCE, turn).await.expect("the turn ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_prompt_is_in_the_api_request_of_another_machine() {
    outrigger_needs::needs!(outrigger_needs::postgres());
    let api = MessagesApi::builder().directives(true).start().await.unwrap();
    let cli = executable().await.unwrap();
    let mut server = postgres::postgres();
    let config = format!(
        "host={} user=postgres dbname=postgres",
        server.directory.path().display()
    );
    let store = again(|| PostgresStore::connect(&config)).await;
    let store: Arc<dyn SessionStore> = Arc::new(store);
    for seed in 1..=3_u64 {
        let rng = &mut Rng::new(seed);
        let sandbox = Sandbox::new().unwrap();
        let machine = || -> Options {
            let mut options = Agent::builder()
                .auth(Auth::ApiKey(Secret::new(ApiRequest::DUMMY_KEY)))
                .cli_path(&cli)
                .cwd(sandbox.project());
            for (name, value) in sandbox.env(&api.base_url()) {
                if name != "ANTHROPIC_API_KEY" {
                    options = options.env(name, value);
                }
            }
            options
                .session_store(Arc::clone(&store))
                .session_store_patience(Duration::from_millis(200))
                .session_store_grace(Duration::from_secs(1))
        };
        let session = machine().start().await.unwrap();
        let mut said = Vec::new();
        let mut is_away = false;
        for nth in 0..6 {
            // The last turns are always behind an outage, and in one.
            if rng.below(2) == 0 || nth >= 4 {
                match is_away {
                    true => server.start_again(),
                    false => server.stop(),
                }
                is_away = !is_away;
            }
            let word = format!("w{seed}x{nth}x");
            say(&session, &word).await;
            said.push(word);
        }
        let id = session.id().unwrap();
        session.close().await.unwrap();
        if is_away {
            server.start_again();
        }
        // What the end left is brought by the machine that has it.
        let session = start(&machine().resume(&id)).await;
        session.close().await.unwrap();

        let home = tempfile::tempdir().unwrap();
        let elsewhere = machine()
            .env("HOME", home.path())
            .env("CLAUDE_CONFIG_DIR", home.path().join("config"));
        let session = start(&elsewhere.resume(&id)).await;
        say(&session, "last").await;
        session.close().await.unwrap();
        let requests = api.message_requests();
        let told = serde_json::to_string(requests.last().unwrap().messages()).unwrap();
        let places: Vec<_> = said
            .iter()
            .map(|word| {
                let place = told.find(&format!("%say {word}"));
                place.unwrap_or_else(|| panic!("seed {seed}: {word} is not in {told}"))
            })
            .collect();
        assert!(places.is_sorted(), "seed {seed}: {places:?} in {told}");
    }
}
