//! The CLI by itself.

use std::path::Path;
use std::time::Instant;

use outrigger_sim::api::MessagesApi;
use outrigger_sim::claude::{Launch, Sandbox, Seen};

use crate::{counted, ms};

/// The times of the CLI alone, in milliseconds.
pub(crate) struct Floor {
    pub(crate) start: f64,
    pub(crate) chunk: f64,
}

pub(crate) async fn run(api: &MessagesApi, cli: &Path) -> Floor {
    let sandbox = Sandbox::new().unwrap();
    let cli = counted(&sandbox, cli, &sandbox.path().join("starts"));
    let began = Instant::now();
    let mut claude = Launch::new(&cli, &sandbox, &api.base_url())
        .arg("--include-partial-messages")
        .spawn()
        .unwrap();
    claude.initialize().await.unwrap();
    let start = ms(began.elapsed());
    claude.prompt("%say first").await.unwrap();
    claude.result().await.unwrap();
    let began = Instant::now();
    claude.prompt("%say second").await.unwrap();
    claude.until("text", is_text).await.unwrap();
    let chunk = ms(began.elapsed());
    claude.result().await.unwrap();
    claude.finish().await.unwrap();
    Floor { start, chunk }
}

fn is_text(seen: &Seen) -> bool {
    seen.frame.kind() == "stream_event" && seen.frame.text().contains("\"text_delta\"")
}
