//! What the CLI writes to stderr, as it comes: `stderr_callback_example.py`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Result, Stage};

pub(crate) async fn run(stage: &Stage) -> Result {
    let lines = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lines);
    let session = stage
        .agent()
        .stderr(move |line: &str| {
            counted.fetch_add(1, Ordering::Relaxed);
            if line.contains("[ERROR]") {
                println!("error: {line}");
            }
        })
        .extra_arg("debug-to-stderr", None)
        .start()
        .await?;
    let mut turn = session.prompt(stage.prompt("What is 2 + 2?", "%say 4.")).await?;
    println!("Claude: {}", turn.answer().await?);
    session.close().await?;
    println!("stderr came: {}", lines.load(Ordering::Relaxed) > 0);
    Ok(())
}
