//! Batches, with simulated CLIs.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _, stream};
use outrigger::testing::Simulated;
use outrigger::testing::sim::peer::{Agent, Match, Steps};
use outrigger::{AfterTools, Cause, Retry};
use outrigger_fleet::batch::{Batch, BatchJob, BatchOrder, BatchStop, JobResult, Journal, JournalError};
use outrigger_fleet::budget::{Amount, Budget, Cap};
use outrigger_fleet::gate::{Gate, GateError, GateLimits, Visitor};
use serde_json::json;
use uuid::Uuid;

fn agent() -> Simulated {
    Simulated::agent(|agent| agent.directives().max_retries(0))
}

fn jobs(prompts: &[(&str, &str)]) -> Vec<BatchJob> {
    prompts
        .iter()
        .map(|(id, prompt)| BatchJob::new(*id, *prompt))
        .collect()
}

fn tokens(tokens: u64) -> Amount {
    Amount {
        tokens,
        ..Amount::default()
    }
}

async fn journal(path: &Path) -> Journal {
    Journal::open(path).await.unwrap()
}

async fn all(batch: Batch, jobs: Vec<BatchJob>) -> (Vec<JobResult>, outrigger_fleet::batch::Summary) {
    let mut run = batch.run(stream::iter(jobs)).unwrap();
    let mut results = Vec::new();
    while let Some(result) = run.next().await {
        results.push(result);
    }
    (results, run.finish().await.unwrap())
}

fn texts(results: &[JobResult]) -> BTreeMap<&str, Result<&str, String>> {
    let text = |result: &JobResult| match &result.result {
        Ok(done) => Ok(done.text.clone()),
        Err(failure) => Err(failure.to_string()),
    };
    results
        .iter()
        .map(|result| match &result.result {
            Ok(done) => (result.id.as_str(), Ok(done.text.as_str())),
            Err(_) => (result.id.as_str(), text(result).map(|_| "")),
        })
        .collect()
}

/// How many prompts the CLIs got.
fn prompts(cli: &Simulated) -> usize {
    cli.started()
        .iter()
        .map(|cli| {
            cli.report()
                .received_kinds()
                .iter()
                .filter(|kind| kind.starts_with("user"))
                .count()
        })
        .sum()
}

#[tokio::test(start_paused = true)]
async fn each_job_is_answered_in_a_session_of_its_own() {
    let cli = agent();
    let many: Vec<BatchJob> = (0..12)
        .map(|n| BatchJob::new(n.to_string(), format!("%say answer {n}")))
        .collect();
    for order in [BatchOrder::AsTheyEnd, BatchOrder::AsTheyCame] {
        let batch = Batch::new(cli.options()).jobs(3).order(order);
        let (results, summary) = all(batch, many.clone()).await;
        assert_eq!(results.len(), 12);
        let ids: std::collections::HashSet<_> =
            results.iter().map(|result| result.session_id.clone()).collect();
        assert_eq!(ids.len(), 12, "a session each");
        for result in &results {
            let done = result.result.as_ref().unwrap();
            assert_eq!(done.text, format!("answer {}", result.id));
            assert_eq!((result.tries, result.is_replayed), (1, false));
        }
        if order == BatchOrder::AsTheyCame {
            let indexes: Vec<u64> = results.iter().map(|result| result.index).collect();
            assert_eq!(indexes, (0..12).collect::<Vec<_>>());
        }
        assert_eq!((summary.progress.done, summary.progress.jobs), (12, Some(12)));
        assert!(summary.stopped.is_none() && summary.unfinished == 0, "{summary}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_passes_is_tried_again_and_what_does_not_is_a_failure() {
    let cli = agent();
    let retry = Retry::new()
        .tries(3)
        .delays(Duration::from_secs(1), Duration::from_secs(9));
    let batch = Batch::new(cli.options()).jobs(2).retry(retry);
    let (results, summary) = all(
        batch,
        jobs(&[
            ("overloaded", "%error 529 n=99\n%say never"),
            ("refused", "%error 400 n=9 msg=\"no such thing\"\n%say never"),
            (
                "tools",
                "%tool TodoWrite {\"todos\": []}\n%error 529 n=99\n%say never",
            ),
            ("fine", "%say fine"),
        ]),
    )
    .await;
    let by_id: BTreeMap<&str, &JobResult> = results
        .iter()
        .map(|result| (result.id.as_str(), result))
        .collect();
    let failure = |id: &str| by_id[id].result.as_ref().unwrap_err();
    assert_eq!(
        (by_id["overloaded"].tries, failure("overloaded").is_transient),
        (3, true)
    );
    assert_eq!(
        (by_id["refused"].tries, failure("refused").is_transient),
        (1, false)
    );
    assert!(
        failure("refused").message.contains("no such thing"),
        "{}",
        failure("refused")
    );
    assert_eq!(
        (by_id["tools"].tries, failure("tools").tools_may_have_run),
        (1, true)
    );
    assert!(matches!(
        failure("overloaded").cause,
        Some(Cause::Api {
            status: Some(529),
            ..
        })
    ));
    assert_eq!(by_id["fine"].result.as_ref().unwrap().text, "fine");
    assert_eq!(
        (
            summary.progress.done,
            summary.progress.failed,
            summary.progress.retries
        ),
        (1, 3, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn a_second_run_does_what_the_first_did_not() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("journal");
    let cli = agent();
    let many = jobs(&[
        ("a", "%say 1"),
        ("b", "%error 400 n=9"),
        ("c", "%say 3"),
        ("d", "%say 4"),
    ]);

    // The program is killed after two results.
    let batch = Batch::new(cli.options()).jobs(1).journal(journal(&path).await);
    let mut run = batch.run(stream::iter(many.clone())).unwrap();
    let first = [run.next().await.unwrap(), run.next().await.unwrap()];
    drop(run);
    assert_eq!(
        first.iter().map(|result| result.id.as_str()).collect::<Vec<_>>(),
        ["a", "b"]
    );
    let before = prompts(&cli);

    let (results, summary) = all(
        Batch::new(cli.options()).journal(reopened(&path).await),
        many.clone(),
    )
    .await;
    let replayed: BTreeMap<&str, bool> = results
        .iter()
        .map(|one| (one.id.as_str(), one.is_replayed))
        .collect();
    assert_eq!(
        replayed,
        [("a", true), ("b", true), ("c", false), ("d", false)].into()
    );
    assert_eq!(texts(&results)["a"], Ok("1"));
    assert!(texts(&results)["b"].is_err());
    assert_eq!(prompts(&cli) - before, 2, "what was done is not done again");
    assert_eq!(
        (
            summary.progress.done,
            summary.progress.failed,
            summary.progress.replayed
        ),
        (3, 1, 2)
    );

    // What failed can be run once more, and nothing else is.
    let before = prompts(&cli);
    let batch = Batch::new(cli.options())
        .journal(reopened(&path).await)
        .retry_failed();
    let (results, _) = all(batch, many.clone()).await;
    assert_eq!((prompts(&cli) - before, results.len()), (1, 4));

    // A journal is for the same prompts.
    let batch = Batch::new(cli.options()).journal(reopened(&path).await);
    let run = batch.run(stream::iter(jobs(&[("a", "something else")]))).unwrap();
    let error = run.finish().await.unwrap_err();
    assert!(
        matches!(&error.summary().stopped, Some(BatchStop::WrongJob { id, .. }) if id == "a"),
        "{error}"
    );
}

/// The journal of a run that was dropped, whose tasks end in their own time.
async fn reopened(path: &Path) -> Journal {
    loop {
        match Journal::open(path).await {
            Err(JournalError::InUse { .. }) => tokio::task::yield_now().await,
            opened => return opened.unwrap(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_killed_program_left_is_looked_up() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("journal");
    let cli = agent();
    // Sessions that ended, and of whose ends the journal knows nothing.
    let prompts_of = [
        ("answered", "%say the answer"),
        ("called", "%tool TodoWrite {\"todos\": []}\n%error 529 n=99"),
        ("silent", "%error 529 n=99\n%say now"),
    ];
    let mut lines = String::from("{\"batch\":1}\n");
    for (id, prompt) in prompts_of {
        let session = cli.options().start().await.unwrap();
        drop(session.prompt(prompt).await.unwrap().outcome().await.unwrap());
        let checksum = sha(prompt);
        let session_id = session.id().unwrap();
        lines += &format!(
            "{{\"begin\":{{\"id\":\"{id}\",\"prompt\":\"{checksum}\",\"session\":\"{session_id}\"}}}}\n"
        );
        session.close().await.unwrap();
    }
    // A session that was never stored.
    let never = "00000000-0000-4000-8000-00000000000a";
    let checksum = sha("%say anew");
    lines +=
        &format!("{{\"begin\":{{\"id\":\"gone\",\"prompt\":\"{checksum}\",\"session\":\"{never}\"}}}}\n");
    let many: Vec<BatchJob> = jobs(&prompts_of)
        .into_iter()
        .chain(jobs(&[("gone", "%say anew")]))
        .collect();

    // A program that wrote how much its tries spent may have been killed before it wrote how the jobs ended.
    let tried: String = ["answered", "called", "silent", "gone"]
        .map(|id| format!("{{\"tried\":{{\"id\":\"{id}\",\"spent\":{{\"usd\":0,\"tokens\":7}}}}}}\n"))
        .concat();
    for (rule, called, more) in [
        (AfterTools::Stop, Err(true), ""),
        (AfterTools::Stop, Err(true), tried.as_str()),
        (AfterTools::GoOn("%say went on".to_owned()), Ok("went on"), ""),
    ] {
        std::fs::write(&path, format!("{lines}{more}")).unwrap();
        let retry = Retry::new().tries(1).after_tools(rule);
        let batch = Batch::new(cli.options())
            .retry(retry)
            .journal(reopened(&path).await);
        let (results, _) = all(batch, many.clone()).await;
        let by_id: BTreeMap<&str, &JobResult> = results.iter().map(|one| (one.id.as_str(), one)).collect();
        let answered = by_id["answered"].result.as_ref().unwrap();
        assert_eq!(
            (
                answered.text.as_str(),
                answered.is_recovered,
                by_id["answered"].tries
            ),
            ("the answer", true, 1)
        );
        assert_eq!(
            (texts(&results)["gone"].clone(), by_id["gone"].tries),
            (Ok("anew"), 2)
        );
        // The API refuses it in the new session, too; what counts is that it was tried.
        assert_eq!(
            (by_id["silent"].result.is_err(), by_id["silent"].tries),
            (true, 2)
        );
        match called {
            Ok(text) => assert_eq!(texts(&results)["called"], Ok(text)),
            Err(tools) => assert_eq!(
                by_id["called"].result.as_ref().unwrap_err().tools_may_have_run,
                tools
            ),
        }
    }
}

/// The look at the session fails, which says nothing about the job.
#[tokio::test(start_paused = true)]
async fn a_look_that_fails_ends_no_job() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("journal");
    let id = "00000000-0000-4000-8000-00000000000a";
    let cli = Simulated::start(move |launch, number| {
        let refused = |text: String| Steps::new().complain(text).exit(1).spawn_in_memory();
        match format!("{:?}", launch.args).contains("--resume") {
            // A process of the killed program still has it.
            true if number < 2 => refused(format!("Error: Session ID {id} is already in use.")),
            true => refused(format!("No conversation found with session ID: {id}")),
            false => Agent::builder().directives().spawn_in_memory(),
        }
    });
    let prompt = "%say anew";
    let begin = json!({"begin": {"id": "a", "prompt": sha(prompt), "session": id}});
    std::fs::write(&path, format!("{{\"batch\":1}}\n{begin}\n")).unwrap();
    let run = async |tries| {
        let batch = Batch::new(cli.options())
            .retry(Retry::new().tries(tries))
            .journal(reopened(&path).await);
        all(batch, jobs(&[("a", prompt)])).await.0.remove(0)
    };
    let failure = run(1).await.result.unwrap_err();
    assert_eq!(failure.cause, Some(Cause::SessionInUse), "{failure}");
    assert!(failure.is_transient && failure.tools_may_have_run, "{failure:?}");
    assert_eq!(cli.started().len(), 1, "it was only looked");
    // It passes: the look is tried again, too.
    let result = run(2).await;
    assert_eq!(
        (
            result.result.unwrap().text.as_str(),
            result.tries,
            result.is_replayed
        ),
        ("anew", 2, false)
    );
}

/// What a killed program left, as lines of a transcript: the prompt, and these.
fn transcript(id: &str, lines: &[serde_json::Value]) -> String {
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "do it"}});
    let mut text = String::new();
    for (number, line) in [&prompt].into_iter().chain(lines).enumerate() {
        let mut line = line.clone();
        line["uuid"] = json!(format!("00000000-0000-4000-8000-{number:012}"));
        line["parentUuid"] = match number {
            0 => json!(null),
            _ => json!(format!("00000000-0000-4000-8000-{:012}", number - 1)),
        };
        line["sessionId"] = json!(id);
        line["timestamp"] = json!("2026-01-01T00:00:00.000Z");
        text += &format!("{line}\n");
    }
    text
}

fn called(id: &str, x: u64) -> serde_json::Value {
    json!({"type": "assistant", "message": {
        "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use", "stop_sequence": null,
        "content": [{"type": "tool_use", "id": id, "name": "StructuredOutput", "input": {"x": x}}],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }})
}

fn resulted(id: &str, is_error: bool) -> serde_json::Value {
    json!({"type": "user", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": id, "content": "…", "is_error": is_error},
    ]}})
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Output {
    x: u64,
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_twice_for_want_of_knowledge() {
    use outrigger::transport::Transport as _;

    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("journal");
    let id = "00000000-0000-4000-8000-00000000000a";
    let cli = Simulated::steps(|| Steps::new().initialize().expect_end());
    let stored = cli
        .home()
        .unwrap()
        .join(format!(".claude/projects/-p/{id}.jsonl"));
    std::fs::create_dir_all(stored.parent().unwrap()).unwrap();
    let begin = json!({"begin": {"id": "a", "prompt": sha("do it"), "session": id}});
    let run = async |options: outrigger::Options| {
        std::fs::write(&path, format!("{{\"batch\":1}}\n{begin}\n")).unwrap();
        let batch = Batch::new(options).journal(reopened(&path).await);
        let (mut results, _) = all(batch, jobs(&[("a", "do it")])).await;
        let has_end = std::fs::read_to_string(&path).unwrap().contains("\"end\"");
        (results.remove(0), has_end)
    };
    let is_anew = |result: &JobResult| result.tries == 2;

    // The model called nothing: so it is seen that the others are not run anew for another cause.
    let compacted = [
        json!({"type": "system", "subtype": "compact_boundary", "content": "…", "compactMetadata": {"trigger": "auto", "preTokens": 7}}),
        json!({"type": "user", "isCompactSummary": true, "message": {"role": "user", "content": "summary"}}),
    ];
    let plain = transcript(id, &[]);
    for (text, may_have_run) in [
        (plain.clone(), false),
        (format!("{plain}{{\"type\":\"assistant\",\"mess\n"), true),
        (transcript(id, &compacted), true),
    ] {
        std::fs::write(&stored, &text).unwrap();
        let (result, has_end) = run(cli.options()).await;
        assert_eq!(is_anew(&result), !may_have_run, "{text}: {result:?}");
        assert!(has_end, "{text}");
        assert_eq!(
            result.result.unwrap_err().tools_may_have_run,
            may_have_run,
            "{text}"
        );
    }
    // A session that is not stored at all, and one of which nothing is found.
    std::fs::write(&stored, &plain).unwrap();
    let (result, _) = run(cli.options().persist_session(false)).await;
    assert!(!is_anew(&result) && result.result.unwrap_err().tools_may_have_run);
    std::fs::remove_file(&stored).unwrap();
    let (result, _) = run(cli.options()).await;
    assert!(!is_anew(&result) && result.result.unwrap_err().tools_may_have_run);
    // An output counts once the CLI took it.
    for (lines, output) in [
        (vec![called("1", 1)], None),
        (vec![called("1", 1), resulted("1", true)], None),
        (
            vec![
                called("1", 1),
                resulted("1", true),
                called("2", 2),
                resulted("2", false),
            ],
            Some(2),
        ),
    ] {
        std::fs::write(&stored, transcript(id, &lines)).unwrap();
        let (result, _) = run(cli.options().output_as::<Output>()).await;
        assert_eq!(is_anew(&result), output.is_none(), "{result:?}");
        let found = result.result.ok().map(|done| done.read::<Output>().unwrap().x);
        assert_eq!(found, output, "{lines:?}");
    }
}

fn sha(text: &str) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(text)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_budget_stops_a_batch_and_counts_what_earlier_runs_spent() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("journal");
    let cli = agent();
    let many: Vec<BatchJob> = (0..10)
        .map(|n| BatchJob::new(n.to_string(), format!("%usage in=900 out=100\n%say {n}")))
        .collect();
    let cap = || Budget::new("batch", Cap::tokens(3500));

    let budget = cap();
    let batch = Batch::new(cli.options())
        .jobs(4)
        .budget(budget.clone(), tokens(1000))
        .journal(journal(&path).await);
    let (results, summary) = all(batch, many.clone()).await;
    assert!(matches!(summary.stopped, Some(BatchStop::Budget(_))), "{summary}");
    assert_eq!(results.len(), 3, "a fourth would exceed the cap");
    assert!(budget.spent().tokens <= 3500 && budget.reserved() == Amount::default());

    // The next program has the same cap, and nothing left of it.
    let budget = cap();
    let batch = Batch::new(cli.options())
        .budget(budget.clone(), tokens(1000))
        .journal(reopened(&path).await);
    let (results, summary) = all(batch, many.clone()).await;
    assert_eq!((results.len(), summary.progress.replayed), (3, 3));
    assert!(matches!(summary.stopped, Some(BatchStop::Budget(_))), "{summary}");

    // With more, it goes on.
    let batch = Batch::new(cli.options())
        .budget(Budget::new("batch", Cap::tokens(100_000)), tokens(1000))
        .journal(reopened(&path).await);
    let (results, summary) = all(batch, many).await;
    assert_eq!((results.len(), summary.progress.replayed), (10, 3));
    assert!(summary.stopped.is_none());
}

/// Other turns of the same budget end while the batch waits, and nobody else wakes it.
#[tokio::test(start_paused = true)]
async fn what_others_have_reserved_is_waited_for() {
    let cli = agent();
    let budget = Budget::new("all", Cap::tokens(1000));
    let (first, second) = (
        budget.reserve(tokens(400)).unwrap(),
        budget.reserve(tokens(400)).unwrap(),
    );
    let batch = Batch::new(cli.options()).budget(budget.clone(), tokens(500));
    let others = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop(first);
        tokio::time::sleep(Duration::from_secs(60)).await;
        second.release();
    };
    let all = async { tokio::join!(all(batch, jobs(&[("a", "%say done")])), others).0 };
    let (results, summary) = tokio::time::timeout(Duration::from_secs(3600), all)
        .await
        .unwrap();
    assert_eq!(texts(&results), [("a", Ok("done"))].into(), "{summary}");
}

/// What the jobs wait for comes in twenty minutes.
#[tokio::test(start_paused = true)]
async fn a_stop_reaches_the_jobs_that_wait() {
    let long = Duration::from_secs(1200);
    let (closed, budget) = (
        Gate::new(GateLimits::default()),
        Budget::new("all", Cap::tokens(1000)),
    );
    closed.close_for(long);
    let reserved = budget.reserve(tokens(900)).unwrap();
    let retry = Retry::new().tries(9).delays(long, long);
    for (change, prompt, sent) in [
        (
            Box::new(|batch: Batch| batch.gate(closed.clone(), None)) as Box<dyn Fn(Batch) -> Batch>,
            "%say never",
            0,
        ),
        (
            Box::new(|batch: Batch| batch.budget(budget.clone(), tokens(500))),
            "%say never",
            0,
        ),
        (
            Box::new(|batch: Batch| batch.retry(retry.clone())),
            "%error 529 n=99",
            2,
        ),
    ] {
        let cli = agent();
        let mut run = change(Batch::new(cli.options()))
            .run(stream::iter(jobs(&[("a", prompt), ("b", prompt)])))
            .unwrap();
        let (monitor, began) = (run.monitor(), tokio::time::Instant::now());
        let stop = async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            monitor.stop();
        };
        assert!(tokio::join!(run.next(), stop).0.is_none());
        assert!(began.elapsed() < long, "{:?}", began.elapsed());
        let summary = run.finish().await.unwrap();
        assert!(matches!(summary.stopped, Some(BatchStop::Asked)), "{summary}");
        assert_eq!((summary.unfinished, prompts(&cli)), (2, sent));
    }
    reserved.release();
}

/// The jobs come from a queue, in which nothing is now.
#[tokio::test(start_paused = true)]
async fn a_batch_that_waits_for_jobs_ends() {
    for order in [BatchOrder::AsTheyEnd, BatchOrder::AsTheyCame] {
        for is_asked in [true, false] {
            let cli = agent();
            let batch = Batch::new(cli.options())
                .order(order)
                .deadline(Duration::from_secs(60));
            let queue = stream::iter(jobs(&[("a", "%say done")])).chain(stream::pending());
            let mut run = batch.run(queue).unwrap();
            assert_eq!(run.next().await.unwrap().id, "a");
            if is_asked {
                run.monitor().stop();
            }
            let finished = tokio::time::timeout(Duration::from_secs(3600), run.finish());
            let summary = finished.await.expect("the batch ends").unwrap();
            let stopped = summary.stopped.clone().unwrap();
            assert_eq!(matches!(stopped, BatchStop::Asked), is_asked, "{summary}");
            assert_eq!(matches!(stopped, BatchStop::Deadline(_)), !is_asked, "{summary}");
            assert_eq!((summary.progress.done, summary.unfinished), (1, 0));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_would_fail_every_job_stops_the_batch() {
    let cli = agent();
    let (done, broken) = (
        jobs(&[("a", "%say 1")]),
        Batch::new(cli.options().model("m").fallback_model("m")),
    );
    let error = broken
        .run(stream::iter(done))
        .unwrap()
        .finish()
        .await
        .unwrap_err();
    assert!(error.error().is_some(), "{error}");
    assert_eq!(error.summary().unfinished, 1);
    let named = Batch::new(cli.options().resume("x"))
        .run(stream::iter(jobs(&[])))
        .unwrap_err();
    assert_eq!(named.option, "resume");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_a_batch_and_leaves_what_is_not_done() {
    let cli = agent();
    let batch = Batch::new(cli.options())
        .jobs(2)
        .deadline(Duration::from_secs(60));
    let many = jobs(&[
        ("quick", "%say done"),
        ("slow", "%delay 3600000\n%say late"),
        ("later", "%delay 3600000\n%say late"),
    ]);
    let began = tokio::time::Instant::now();
    let (results, summary) = all(batch, many).await;
    assert_eq!(texts(&results), [("quick", Ok("done"))].into());
    assert!(
        matches!(summary.stopped, Some(BatchStop::Deadline(_))),
        "{summary}"
    );
    assert_eq!(summary.unfinished, 2);
    assert!(began.elapsed() < Duration::from_secs(90));
}

/// Each limit ends what it is for, and nothing stays reserved.
#[tokio::test(start_paused = true)]
async fn deadlines_retries_and_a_budget_hold_at_once() {
    let cli = agent();
    let budget = Budget::new("batch", Cap::tokens(4000));
    let retry = Retry::new()
        .tries(100)
        .delays(Duration::from_secs(30), Duration::from_secs(30));
    let batch = Batch::new(cli.options().turn_deadline(Duration::from_secs(20)))
        .jobs(4)
        .retry(retry)
        .budget(budget.clone(), tokens(1000))
        .deadline(Duration::from_secs(100));
    let many = jobs(&[
        ("stuck", "%delay 3600000\n%say late"),
        ("busy", "%error 529 n=999\n%say never"),
        ("fine", "%usage in=900 out=100\n%say fine"),
        ("next", "%usage in=900 out=100\n%say next"),
    ]);
    let began = tokio::time::Instant::now();
    let (results, summary) = all(batch, many).await;
    assert!(
        began.elapsed() < Duration::from_secs(130),
        "{:?}",
        began.elapsed()
    );
    let by_id: BTreeMap<&str, &JobResult> = results
        .iter()
        .map(|result| (result.id.as_str(), result))
        .collect();
    let ids: Vec<_> = by_id.keys().copied().collect();
    assert_eq!(
        ids,
        ["fine", "next", "stuck"],
        "one that waits for its next try is left"
    );
    let stuck = by_id["stuck"];
    let failure = stuck.result.as_ref().unwrap_err();
    assert_eq!(
        (stuck.tries, failure.cause.clone()),
        (1, Some(Cause::DeadlinePassed)),
        "a try that took too long would again"
    );
    assert!(
        matches!(summary.stopped, Some(BatchStop::Deadline(_))),
        "{summary}"
    );
    assert_eq!(summary.unfinished, 1);
    assert!(summary.progress.retries > 1, "{summary}");
    assert_eq!(budget.reserved(), Amount::default());
    // What a turn that was cut off has used is not known: its reservation is charged.
    assert_eq!(budget.spent().tokens, 3000);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_holds_for_a_cli_that_never_stops_talking() {
    let cli = Simulated::steps(|| {
        let begin = Steps::new().initialize().expect(Match::prompt("talk"));
        (0..1000).fold(begin, |steps, number| {
            steps.sleep(Duration::from_secs(5)).send(json!({
                "type": "assistant", "parent_tool_use_id": null, "session_id": "s", "uuid": Uuid::new_v4(),
                "message": {"id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "m",
                    "content": [{"type": "text", "text": "and"}], "stop_reason": null, "stop_sequence": null,
                    "usage": {"input_tokens": 1, "output_tokens": 1}},
            }))
        })
    });
    let batch = Batch::new(cli.options()).deadline(Duration::from_secs(60));
    let began = tokio::time::Instant::now();
    let (results, summary) = all(batch, jobs(&[("talker", "talk")])).await;
    assert!(results.is_empty(), "{results:?}");
    assert!(
        matches!(summary.stopped, Some(BatchStop::Deadline(_))),
        "{summary}"
    );
    assert_eq!(summary.unfinished, 1);
    // The deadline, the time to take the interrupt, and the time to end the process.
    assert!(
        began.elapsed() < Duration::from_secs(100),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_gate_holds_jobs_back() {
    let cli = agent();
    let mut limits = GateLimits::default();
    limits.max_running = 1;
    let gate = Gate::new(limits);
    let batch = Batch::new(cli.options()).jobs(4).gate(gate.clone(), None);
    let mut run = batch
        .run(stream::iter(jobs(&[
            ("a", "%say 1"),
            ("b", "%say 2"),
            ("c", "%say 3"),
            ("d", "%say 4"),
        ])))
        .unwrap();
    let monitor = run.monitor();
    let mut most = 0;
    while let Some(result) = run.next().await {
        most = most.max(gate.state().running);
        result.result.unwrap();
    }
    assert!(most <= 1);
    assert_eq!(monitor.progress().done, 4);
    assert_eq!(gate.state().running, 0);
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_refuses_stops_the_batch() {
    let cli = agent();
    let mut limits = GateLimits::default();
    (limits.max_running, limits.max_waiting) = (1, 1);
    let gate = Gate::new(limits);
    let pass = gate.enter(Visitor::new("other")).await.unwrap();
    let mut waits = Box::pin(gate.enter(Visitor::new("another")));
    assert!(waits.as_mut().now_or_never().is_none());
    let batch = Batch::new(cli.options()).jobs(1).gate(gate.clone(), None);
    let run = batch
        .run(stream::iter(jobs(&[("a", "%say 1"), ("b", "%say 2")])))
        .unwrap();
    let error = run.finish().await.unwrap_err();
    assert!(
        matches!(
            error.summary().stopped,
            Some(BatchStop::Gate(GateError::Full { .. }))
        ),
        "{error}"
    );
    assert_eq!((error.summary().unfinished, prompts(&cli)), (1, 0));
    drop((pass, waits));
}

/// What goes wrong with a prompt, and whether it gets an answer in the end.
fn trouble(random: &mut fastrand::Rng, n: usize) -> (String, bool) {
    let say = format!("%usage in=90 out=10\n%say answer {n}");
    match random.u8(..10) {
        0 => (format!("%error 429 n=1\n{say}"), true),
        1 => (format!("%error 529 n=2\n{say}"), true),
        2 => (format!("%drop n=1\n{say}"), true),
        3 => (format!("%error 400 n=99 msg=\"never {n}\"\n{say}"), false),
        4 => (format!("%delay 20000\n{say}"), true),
        5 => (format!("%tool TodoWrite {{\"todos\": []}}\n{say}"), true),
        _ => (say, true),
    }
}

/// Prompts of which many fail at first, processes that are killed, and a program that is killed again and again: each job is answered
/// once, or listed as failed with its reason. `OUTRIGGER_BATCH_JOBS` and `OUTRIGGER_SEED` ask for another number and other trouble.
#[tokio::test(start_paused = true)]
async fn whatever_goes_wrong_each_job_ends_once() {
    let set = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse::<u64>().ok())
    };
    let (count, seed) = (
        set("OUTRIGGER_BATCH_JOBS").unwrap_or(150),
        set("OUTRIGGER_SEED").unwrap_or(7),
    );
    let mut random = fastrand::Rng::with_seed(seed);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("journal");
    let cli = Simulated::agent(|agent| agent.directives().max_retries(1));
    let given: Vec<(BatchJob, bool)> = (0..usize::try_from(count).unwrap())
        .map(|n| {
            let (prompt, answered) = trouble(&mut random, n);
            (BatchJob::new(format!("job {n}"), prompt), answered)
        })
        .collect();
    let jobs = || stream::iter(given.iter().map(|(job, _)| job.clone()).collect::<Vec<_>>());
    let (mut runs, mut killed) = (0, 0);
    let results = loop {
        runs += 1;
        assert!(runs < 10_000, "it comes to an end");
        let retry = Retry::new()
            .tries(6)
            .delays(Duration::from_secs(1), Duration::from_secs(30))
            .after_tools(AfterTools::Repeat);
        // Room for all, and for the tries of killed programs, which count with what was reserved.
        let budget = Budget::new("all", Cap::tokens(count * 100_000));
        let batch = Batch::new(cli.options())
            .jobs(8)
            .retry(retry)
            .budget(budget.clone(), tokens(100))
            .journal(reopened(&path).await);
        let mut run = batch.run(jobs()).unwrap();
        // The program is killed after some time, or lives to the end.
        let life = Duration::from_secs(random.u64(1..120) + 2 * runs);
        let mut results = Vec::new();
        let whole = tokio::time::timeout(life, async {
            loop {
                tokio::select! {
                    result = run.next() => match result {
                        Some(result) => results.push(result),
                        None => return,
                    },
                    () = tokio::time::sleep(Duration::from_secs(3)) => {
                        // Some other process of the machine is killed.
                        if let Some(victim) = random.choice(cli.started().iter().rev().take(8)) {
                            victim.signal(outrigger::testing::sim::peer::Signal::Kill);
                            killed += 1;
                        }
                    }
                }
            }
        });
        if whole.await.is_ok() {
            let summary = run.finish().await.unwrap();
            assert!(summary.stopped.is_none() && summary.unfinished == 0, "{summary}");
            assert_eq!(summary.progress.done + summary.progress.failed, count);
            break results;
        }
        drop(run);
    };
    println!("{count} jobs, {runs} runs, {killed} processes killed");
    let ids: std::collections::HashSet<&str> = results.iter().map(|result| result.id.as_str()).collect();
    assert_eq!(
        (results.len(), ids.len()),
        (given.len(), given.len()),
        "each job once"
    );
    for result in &results {
        let index = usize::try_from(result.index).unwrap();
        let (job, answered) = &given[index];
        assert_eq!(result.id, job.id);
        match &result.result {
            Ok(done) => assert_eq!(
                (done.text.as_str(), *answered),
                (&*format!("answer {index}"), true)
            ),
            Err(failure) => assert!(
                !*answered && failure.message.contains("never") || failure.is_transient,
                "{}: {failure}",
                result.id
            ),
        }
    }
}

/// A budget that does not suffice, and a program that is killed again and again: what all its runs spend stays below the cap.
#[tokio::test(start_paused = true)]
async fn a_cap_holds_over_kills() {
    let mut random = fastrand::Rng::with_seed(11);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("journal");
    let cli = agent();
    let many: Vec<BatchJob> = (0..60)
        .map(|n| {
            BatchJob::new(
                n.to_string(),
                format!("%delay 3000\n%usage in=90 out=10\n%say {n}"),
            )
        })
        .collect();
    let cap = 2500;
    let mut kills = 0_u32;
    let (results, spent) = loop {
        let budget = Budget::new("all", Cap::tokens(cap));
        let batch = Batch::new(cli.options())
            .jobs(4)
            .budget(budget.clone(), tokens(100))
            .journal(reopened(&path).await);
        let mut run = batch.run(stream::iter(many.clone())).unwrap();
        let mut results = Vec::new();
        let whole = tokio::time::timeout(Duration::from_secs(random.u64(2..9)), async {
            while let Some(result) = run.next().await {
                results.push(result);
            }
        });
        let is_whole = whole.await.is_ok();
        assert!(budget.spent().tokens <= cap, "{}", budget.spent());
        if is_whole {
            let summary = run.finish().await.unwrap();
            assert!(matches!(summary.stopped, Some(BatchStop::Budget(_))), "{summary}");
            break (results, budget.spent());
        }
        kills += 1;
        drop(run);
    };
    // What the CLIs reported, of all tries that came to an end.
    let reported: u64 = cli
        .started()
        .iter()
        .flat_map(|cli| {
            cli.report()
                .sent()
                .filter(|frame| frame["type"] == "result")
                .cloned()
                .collect::<Vec<_>>()
        })
        .map(|frame| {
            frame["usage"]["input_tokens"].as_u64().unwrap()
                + frame["usage"]["output_tokens"].as_u64().unwrap()
        })
        .sum();
    assert!(kills > 2, "{kills}");
    assert!(
        reported <= spent.tokens && spent.tokens <= cap,
        "{reported}, {spent}"
    );
    // Each kill costs what is reserved for the tries that run, at most.
    let wasted = u64::from(kills) * 4;
    let done = u64::try_from(results.len()).unwrap();
    assert!(
        done <= cap / 100 && done + wasted >= cap / 100,
        "{done} done, {kills} kills"
    );
}
