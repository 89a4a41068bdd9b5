//! Conversations in a store: the folder `session_stores`.
//!
//! There the stores themselves are the example: PostgreSQL, Redis, S3. Here they are the crate `outrigger-stores`, and each is used
//! as the one in memory is used below.

use std::sync::Arc;

use outrigger::sessions::store::MemoryStore;

use crate::support::{Result, Stage};

pub(crate) async fn run(stage: &Stage) -> Result {
    let store = Arc::new(MemoryStore::default());
    let session = stage
        .agent()
        .session_store(Arc::clone(&store) as _)
        .start()
        .await?;
    let mut turn = session
        .prompt(stage.prompt("My name is Ada.", "%say Hello, Ada."))
        .await?;
    println!("Claude: {}", turn.answer().await?);
    let id = session.id().ok_or("the session has no id")?;
    session.close().await?;

    // Any machine that reaches the store can go on.
    let session = stage.agent().session_store(store as _).resume(id).start().await?;
    let mut turn = session
        .prompt(stage.prompt("What is my name?", "%say Ada."))
        .await?;
    println!("Claude: {}", turn.answer().await?);
    session.close().await?;
    Ok(())
}
