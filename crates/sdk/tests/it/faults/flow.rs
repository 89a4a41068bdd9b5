//! Pipes that are full, and readers that are late.

use std::time::Duration;

use outrigger::Event;
use outrigger_sim::peer::faulty::{FaultyScript, FaultyStep, frames};
use serde_json::json;

use super::stand::{Stand, on_both_runtimes, read, tell, turn};

fn begun() -> FaultyScript {
    FaultyScript::new().initialize().prompt()
}

/// Nobody reads before the turn is over; then one frame at a time, with others in between.
async fn a_reader_of_10000_frames_that_comes_late_misses_none() {
    let stand = Stand::new(
        &begun()
            .repeat(10_000, FaultyScript::new().say("$i"))
            .result("fine"),
    );
    let session = stand.session().await;
    let mut running = session.prompt("go").await.unwrap();
    running.watch().outcome().await.unwrap();
    let mut seen = 0;
    while let Some(event) = running.next().await {
        if let Event::Text(text) = event.unwrap() {
            assert_eq!(text, seen.to_string());
            seen += 1;
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(seen, 10_000);
    stand.closed(session).await;
}

/// 10 MB for a reader that has room for a fortieth of that.
async fn what_a_late_reader_does_not_take_does_not_fill_the_memory() {
    const ROOM: usize = 256 * 1024;
    const FRAMES: usize = 5000;
    let long = "x".repeat(2000);
    let stand = Stand::new(
        &begun()
            .repeat(FRAMES, FaultyScript::new().say(&format!("$i {long}")))
            .request("held")
            .reply(json!({}))
            .result("fine"),
    );
    let session = stand.options().buffer_bytes(ROOM).start().await.unwrap();
    let mut running = session.prompt("go").await.unwrap();
    session.raw_request("held", json!({})).await.unwrap();
    let stats = session.stats();
    assert!(stats.held_bytes <= ROOM, "{} bytes", stats.held_bytes);
    assert!(
        stats.spilled_bytes > 9_000_000,
        "{} bytes on disk",
        stats.spilled_bytes
    );
    let mut seen = 0;
    while let Some(event) = running.next().await {
        match event.unwrap() {
            Event::Text(text) => {
                assert!(text.starts_with(&format!("{seen} x")), "{seen}: {}", &text[..20]);
                seen += 1;
            }
            Event::Lagged(lag) => panic!("{lag}"),
            _ => {}
        }
    }
    assert_eq!(seen, FRAMES);
    assert_eq!(session.stats().left_out.frames, 0);
    stand.closed(session).await;
}

/// The CLI writes more than a pipe holds before it reads a prompt that is more than a pipe holds.
async fn both_pipes_full_at_once_is_no_deadlock() {
    let burst = FaultyScript::new().repeat(
        256,
        FaultyScript::new().line(json!({"type": "keep_alive", "x": "y".repeat(1024)})),
    );
    let stand = Stand::new(
        &FaultyScript::new()
            .then(burst.clone())
            .initialize()
            .then(burst.clone())
            .prompt()
            .then(burst)
            .result("fine"),
    );
    let session = stand.session().await;
    let (_, outcome) = turn(&session, &"p".repeat(128 * 1024)).await;
    assert_eq!(outcome.result_text(), "fine");
    session.close().await.unwrap();
    let prompt = stand
        .received()
        .into_iter()
        .find(|line| line["type"] == "user")
        .unwrap();
    assert!(prompt.to_string().len() > 128 * 1024);
    stand.gone().await;
}

/// It reads nothing any more: what is written to it waits, what it writes is read, and it can be ended.
async fn a_cli_that_stops_reading_blocks_nobody() {
    let stand = Stand::new(
        &begun()
            .repeat(1000, FaultyScript::new().say("$i"))
            .result("fine")
            .step(FaultyStep::Hold),
    );
    let session = stand
        .options()
        .control_deadline(Duration::from_millis(100))
        .interrupt_deadline(Duration::from_millis(100))
        .close_grace(Duration::from_millis(100))
        .start()
        .await
        .unwrap();
    let mut running = session.prompt("go").await.unwrap();
    let mut waiting = session.queue("w".repeat(1024 * 1024)).await.unwrap();
    let (told, outcome) = read(&mut running).await;
    assert_eq!((told.len(), outcome.result_text()), (1000, "fine"));
    for _ in 0..3 {
        let error = session.raw_request("mcp_status", json!({})).await.unwrap_err();
        assert!(error.is_timeout(), "{error}");
    }
    assert!(session.interrupt().await.unwrap_err().is_timeout());
    assert!(waiting.cancel().await.unwrap_err().is_timeout());
    let exit = session.close().await.unwrap();
    assert_eq!(exit.signal, Some(15));
    assert!(waiting.outcome().await.unwrap_err().is_closed());
    stand.gone().await;
}

/// Reading is cancelled all the time, and lines come in two pieces with cancellations in between.
async fn reading_that_is_cancelled_between_two_pieces_loses_nothing() {
    let mut script = begun();
    for number in 0..10 {
        let line = format!("{}\n", frames::text(&format!("äöü {number}")));
        // In the middle of a character.
        let cut = line.find('ö').unwrap() + 1;
        script = script
            .raw(line.as_bytes()[..cut].to_vec())
            .request("go on")
            .raw(line.as_bytes()[cut..].to_vec())
            .reply(json!({}));
    }
    let stand = Stand::new(&script.result("fine"));
    let session = stand.session().await;
    let mut running = session.prompt("go").await.unwrap();
    let mut frames = session.frames();
    let mut told = Vec::new();
    let mut seen = 0;
    let mut released = 0;
    let mut tick = tokio::time::interval(Duration::from_millis(1));
    loop {
        tokio::select! {
            event = running.next() => match event {
                Some(event) => told.extend(tell(&event.unwrap())),
                None => break,
            },
            frame = frames.next() => seen += usize::from(frame.unwrap().unwrap().kind() == "assistant"),
            _ = tick.tick() => {
                // The next piece comes only after reading was given up in between.
                if released == told.len() && released < 10 {
                    released += 1;
                    let session = session.clone();
                    tokio::spawn(async move { session.raw_request("go on", json!({})).await });
                }
            }
        }
    }
    let expected: Vec<_> = (0..10).map(|number| format!("text äöü {number}")).collect();
    assert_eq!(told, expected);
    session.close().await.unwrap();
    while let Some(frame) = frames.next().await {
        seen += usize::from(frame.unwrap().kind() == "assistant");
    }
    assert_eq!(seen, 10);
    stand.gone().await;
}

/// A thread that is blocked by its user blocks only itself.
async fn a_reader_that_blocks_its_thread_for_a_while_loses_nothing() {
    let stand = Stand::new(
        &begun()
            .repeat(2000, FaultyScript::new().say("$i"))
            .ask("q", "Bash")
            .answer_to("q")
            .result("fine"),
    );
    let session = stand.session().await;
    let mut running = session.prompt("go").await.unwrap();
    let mut seen = 0;
    while let Some(event) = running.next().await {
        if let Event::Text(text) = event.unwrap() {
            assert_eq!(text, seen.to_string());
            seen += 1;
            if seen % 500 == 0 {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
    assert_eq!((seen, stand.answers().len()), (2000, 1));
    stand.closed(session).await;
}

on_both_runtimes!(
    a_reader_of_10000_frames_that_comes_late_misses_none,
    what_a_late_reader_does_not_take_does_not_fill_the_memory,
    both_pipes_full_at_once_is_no_deadlock,
    a_cli_that_stops_reading_blocks_nobody,
    reading_that_is_cancelled_between_two_pieces_loses_nothing,
    a_reader_that_blocks_its_thread_for_a_while_loses_nothing,
);
