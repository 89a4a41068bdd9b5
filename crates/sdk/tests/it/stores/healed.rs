//! What a store did not take is still there: the real CLI, stores that go away, programs that are killed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outrigger::protocol::RawJson;
use outrigger::sessions::store::{
    BoxFuture, LeaseStore, MemoryStore, Result, SessionKey, SessionStore, StoreError, StoreLease,
};
use outrigger::{LeaseOptions, LeaseProblem, OnBusy, Options};
use outrigger_sim::api::ApiRequest;

use super::file::FileStore;
use super::real::{config_dir, elsewhere, project, told, two_turns};
use super::{Fate, Kept};
use crate::orphans::{Host, Job};
use crate::real::rig::{Rig, turn};
use crate::witness::{living_in, none_left, until};

/// Nobody waits long for a store that is away.
fn hasty(options: Options) -> Options {
    options
        .session_store_patience(Duration::from_millis(100))
        .session_store_grace(Duration::from_millis(300))
}

/// What was said, and what came of it, of prompts with these words.
fn said(words: &[&str]) -> Vec<String> {
    let both = words
        .iter()
        .flat_map(|word| [format!("%say {word}"), (*word).to_owned()]);
    both.collect()
}

fn names(place: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(place).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_within_a_session_leaves_no_hole() {
    let rig = Rig::start().await;
    let kept = Kept::new();
    let options = rig.options().session_store(Arc::clone(&kept) as _);
    let options = options.session_store_patience(Duration::from_millis(100));
    let session = options.start().await.unwrap();
    turn(&session, "%say one").await;
    kept.is_away(true);
    turn(&session, "%say two").await;
    assert!(session.stats().store_lag.is_some_and(|lag| lag.is_behind));
    kept.is_away(false);
    turn(&session, "%say three").await;
    let id = session.id().unwrap();
    session.close().await.unwrap();

    let (options, _home) = elsewhere(&rig, &kept);
    let session = options.resume(id).start().await.unwrap();
    turn(&session, "%say four").await;
    assert_eq!(told(&rig)[..6], said(&["one", "two", "three"])[..]);
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_end_left_is_brought_when_the_session_goes_on_here() {
    let rig = Rig::start().await;
    let kept = Kept::new();
    let options = || hasty(rig.options().session_store(Arc::clone(&kept) as _));
    let session = options().start().await.unwrap();
    turn(&session, "%say one").await;
    kept.is_away(true);
    turn(&session, "%say two").await;
    let id = session.id().unwrap();
    session.close().await.unwrap();
    let key = SessionKey::new(project(&rig), &id);
    assert!(!kept.texts(&key).iter().any(|line| line.contains("%say two")));

    // It can't go on from the store as that is: it would go on without the end.
    let error = options().resume(&id).start().await.unwrap_err();
    assert!(error.as_store_error().is_some(), "{error}");
    kept.is_away(false);
    let session = options().resume(&id).start().await.unwrap();
    turn(&session, "%say three").await;
    assert_eq!(told(&rig)[..4], said(&["one", "two"])[..]);
    session.close().await.unwrap();

    let (options, _home) = elsewhere(&rig, &kept);
    let session = options.resume(id).start().await.unwrap();
    turn(&session, "%say four").await;
    assert_eq!(told(&rig)[..6], said(&["one", "two", "three"])[..]);
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_directory_is_kept_without_credentials_until_its_store_has_everything() {
    let rig = Rig::start().await;
    let kept = Kept::new();
    let id = two_turns(rig.options().session_store(Arc::clone(&kept) as _)).await;
    let (options, _home) = elsewhere(&rig, &kept);
    let options = hasty(options).resume(id.clone());
    let session = options.clone().start().await.unwrap();
    let place = config_dir(&session);
    std::fs::write(place.join(".credentials.json"), "secret").unwrap();
    kept.is_away(true);
    turn(&session, "%say three").await;
    session.close().await.unwrap();
    assert_eq!(names(&place), [".outrigger-owned", "projects"]);

    kept.is_away(false);
    let session = options.start().await.unwrap();
    assert!(!place.exists(), "it was brought");
    turn(&session, "%say four").await;
    assert_eq!(told(&rig)[..6], said(&["one", "two", "three"])[..]);
    let place = config_dir(&session);
    session.close().await.unwrap();
    assert!(!place.exists());
}

/// The CLI writes a line to its transcript, and reports the line up to a tenth of a second later. A kill may come between the two.
#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_a_killed_cli_wrote_and_did_not_report_is_brought() {
    let rig = Rig::start().await;
    let kept = Kept::new();
    let id = two_turns(rig.options().session_store(Arc::clone(&kept) as _)).await;
    let (options, _home) = elsewhere(&rig, &kept);
    let options = options.resume(id.clone());
    let session = options.clone().start().await.unwrap();
    let place = config_dir(&session);
    std::fs::write(place.join(".credentials.json"), "secret").unwrap();
    turn(&session, "%say three").await;
    let key = SessionKey::new(project(&rig), &id);
    let transcript = place.join(format!("projects/{}/{id}.jsonl", key.project_key));
    let unreported = r#"{"type":"ai-title","aiTitle":"unreported","sessionId":"x"}"#;
    let mut text = std::fs::read_to_string(&transcript).unwrap();
    text.push_str(unreported);
    text.push('\n');
    std::fs::write(&transcript, text).unwrap();
    session.clone().kill().await.unwrap();
    session.wait_ended().await;
    assert!(!kept.texts(&key).iter().any(|line| line == unreported));
    assert_eq!(names(&place), [".outrigger-owned", "projects"]);

    let session = options.start().await.unwrap();
    assert!(!place.exists(), "the transcript was brought");
    assert!(kept.texts(&key).iter().any(|line| line == unreported));
    session.close().await.unwrap();
}

/// As above: a report may be in what nobody read, since somebody else holds the CLI's stdout. The CLI itself ended well.
#[tokio::test(flavor = "multi_thread")]
async fn the_transcripts_stay_when_the_end_of_stdout_was_not_read() {
    let rig = Rig::start().await;
    let kept = Kept::new();
    let id = two_turns(rig.options().session_store(Arc::clone(&kept) as _)).await;
    let root = tempfile::tempdir().unwrap();
    let (cli, holder) = (root.path().join("claude"), root.path().join("holder"));
    let script = format!(
        "#!/bin/sh\nsetsid sh -c 'echo $$ > {}; exec sleep 60' </dev/null 2>&1 &\nexec '{}' \"$@\"\n",
        holder.display(),
        rig.executable().display()
    );
    outrigger_needs::script(&cli, script).unwrap();
    let (options, _home) = elsewhere(&rig, &kept);
    let session = options
        .clone()
        .cli_path(&cli)
        .resume(id.clone())
        .start()
        .await
        .unwrap();
    let place = config_dir(&session);
    turn(&session, "%say three").await;
    session.clone().close().await.unwrap();
    let ended = session.wait_ended().await;
    assert!(ended.exit().is_some_and(|exit| exit.success()), "{ended}");
    assert_eq!(names(&place), [".outrigger-owned", "projects"]);
    let holder = std::fs::read_to_string(holder).unwrap();
    let holder = rustix::process::Pid::from_raw(holder.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(holder, rustix::process::Signal::KILL).unwrap();

    let session = options.resume(id).start().await.unwrap();
    assert!(!place.exists(), "the store has everything");
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_went_on_elsewhere_is_not_mixed_with_what_was_left_here() {
    let rig = Rig::start().await;
    let kept = Kept::new();
    let id = two_turns(rig.options().session_store(Arc::clone(&kept) as _)).await;
    let (here, _home) = elsewhere(&rig, &kept);
    let here = hasty(here).resume(id.clone());
    let session = here.clone().start().await.unwrap();
    let place = config_dir(&session);
    kept.is_away(true);
    turn(&session, "%say left").await;
    session.close().await.unwrap();
    kept.is_away(false);

    let (there, _other) = elsewhere(&rig, &kept);
    let there = there.resume(id.clone());
    // As on another machine: what was kept is not there.
    let moved = std::env::temp_dir().join(format!("moved-{id}"));
    std::fs::rename(&place, &moved).unwrap();
    let session = there.start().await.unwrap();
    turn(&session, "%say elsewhere").await;
    session.close().await.unwrap();
    std::fs::rename(&moved, &place).unwrap();

    let key = SessionKey::new(project(&rig), &id);
    let before = kept.texts(&key);
    let session = here.start().await.unwrap();
    let mut frames = session.frames();
    turn(&session, "%say three").await;
    assert_eq!(told(&rig)[..6], said(&["one", "two", "elsewhere"])[..]);
    let told = loop {
        let frame = frames.next().await.unwrap().unwrap();
        if frame.subtype() == Some("mirror_error") {
            break String::from_utf8_lossy(frame.bytes()).into_owned();
        }
    };
    assert!(
        told.contains(&place.display().to_string()) && told.contains("went on elsewhere"),
        "{told}"
    );
    session.close().await.unwrap();
    let after = kept.texts(&key);
    assert_eq!(after[..before.len()], before[..]);
    assert!(!after.iter().any(|line| line.contains("%say left")));
    assert!(place.join("projects").exists(), "it is kept");
    std::fs::remove_dir_all(place).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_only_this_disk_has_is_stored_from_its_beginning() {
    let rig = Rig::start().await;
    let id = two_turns(rig.options()).await;
    let kept = Kept::with([Fate::Takes(Duration::from_millis(1))]);
    let options = rig.options().session_store(Arc::clone(&kept) as _);
    let session = options.resume(id.clone()).start().await.unwrap();
    assert_eq!(
        config_dir(&session),
        rig.sandbox().config(),
        "it goes on where it is"
    );
    turn(&session, "%say three").await;
    session.close().await.unwrap();
    let (options, _home) = elsewhere(&rig, &kept);
    let session = options.resume(id).start().await.unwrap();
    turn(&session, "%say four").await;
    assert_eq!(told(&rig)[..6], said(&["one", "two", "three"])[..]);
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_store_refuses_for_good_keeps_no_session_from_going_on() {
    let rig = Rig::start().await;
    let kept = Kept::with([Fate::Takes(Duration::from_millis(1)), Fate::Refuses]);
    let options = || hasty(rig.options().session_store(Arc::clone(&kept) as _));
    let session = options().start().await.unwrap();
    turn(&session, "%say one").await;
    turn(&session, "%say two").await;
    let id = session.id().unwrap();
    session.clone().close().await.unwrap();
    assert!(session.stats().mirror_errors > 0);

    kept.appends.lock().unwrap().push_back(Fate::Refuses);
    let session = options().resume(&id).start().await.unwrap();
    let mut frames = session.frames();
    turn(&session, "%say three").await;
    let told = loop {
        let frame = frames.next().await.unwrap().unwrap();
        if frame.subtype() == Some("mirror_error") {
            break String::from_utf8_lossy(frame.bytes()).into_owned();
        }
    };
    assert!(told.contains("refuses for good"), "{told}");
    session.close().await.unwrap();
    // It went on from the store, and goes on: what is here stays apart.
    let session = options().resume(&id).start().await.unwrap();
    session.close().await.unwrap();
    let key = SessionKey::new(project(&rig), &id);
    let texts = kept.texts(&key).concat();
    assert!(
        texts.contains("%say three") && !texts.contains("%say two"),
        "{texts}"
    );
}

/// A store that is written to under leases alone, and can go away.
#[derive(Default)]
struct Leased {
    memory: MemoryStore,
    away: AtomicBool,
}

impl SessionStore for Leased {
    fn append<'a>(&'a self, key: &'a SessionKey, _: &'a [RawJson]) -> BoxFuture<'a, Result<()>> {
        panic!("{key} is appended to without a lease")
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<RawJson>>>> {
        self.memory.load(key)
    }

    fn leases(&self) -> Option<&dyn LeaseStore> {
        Some(self)
    }
}

impl LeaseStore for Leased {
    fn acquire<'a>(
        &'a self,
        key: &'a SessionKey,
        owner: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<StoreLease>> {
        self.memory.acquire(key, owner, ttl)
    }

    fn renew<'a>(&'a self, lease: &'a StoreLease, ttl: Duration) -> BoxFuture<'a, Result<StoreLease>> {
        self.memory.renew(lease, ttl)
    }

    fn release<'a>(&'a self, lease: &'a StoreLease) -> BoxFuture<'a, Result<()>> {
        self.memory.release(lease)
    }

    fn append_fenced<'a>(
        &'a self,
        lease: &'a StoreLease,
        key: &'a SessionKey,
        entries: &'a [RawJson],
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match self.away.load(Ordering::SeqCst) {
                true => Err(StoreError::failed("append", std::io::Error::other("it is away"))),
                false => self.memory.append_fenced(lease, key, entries).await,
            }
        })
    }
}

/// What was left is brought by whoever has the session, and by nobody else: another session of this program, or a program elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_left_is_brought_under_the_lease_alone() {
    let rig = Rig::start().await;
    let store = Arc::<Leased>::default();
    let options = |on_busy| {
        let options = rig.options().session_store(Arc::clone(&store) as _);
        hasty(options).lease(LeaseOptions::new().owner("here").on_busy(on_busy))
    };
    let session = options(OnBusy::Fail).start().await.unwrap();
    turn(&session, "%say one").await;
    store.away.store(true, Ordering::SeqCst);
    turn(&session, "%say two").await;
    let id = session.id().unwrap();
    let key = SessionKey::new(project(&rig), &id);
    let before = store.memory.entries(&key);
    let texts = |entries: &[RawJson]| -> String { entries.iter().map(|entry| entry.get()).collect() };
    assert!(texts(&before).contains("%say one") && !texts(&before).contains("%say two"));

    // While this program's own session has it.
    store.away.store(false, Ordering::SeqCst);
    let second = options(OnBusy::Fail).resume(&id).start().await.unwrap_err();
    assert!(
        matches!(second.as_lease_problem(), Some(LeaseProblem::Held { .. })),
        "{second}"
    );
    store.away.store(true, Ordering::SeqCst);
    session.close().await.unwrap();
    let before = store.memory.entries(&key);
    let is_left = !texts(&before).contains("%say two");

    // While somebody elsewhere has it.
    store.away.store(false, Ordering::SeqCst);
    let ttl = Duration::from_secs(3600);
    let theirs = store.memory.acquire(&key, "elsewhere", ttl).await.unwrap();
    let busy = options(OnBusy::Fail).resume(&id).start().await.unwrap_err();
    assert!(
        matches!(busy.as_lease_problem(), Some(LeaseProblem::Held { .. })),
        "{busy}"
    );
    assert_eq!(store.memory.entries(&key), before);
    let taken = options(OnBusy::TakeOver).resume(&id).start().await.unwrap();
    let brought = store.memory.entries(&key);
    assert!(texts(&brought).contains("%say two"));
    assert!(!is_left || brought.len() > before.len());
    let entry = RawJson::from_text(r#"{"type":"user","uuid":"late"}"#).unwrap();
    let late = store
        .memory
        .append_fenced(&theirs, &key, std::slice::from_ref(&entry))
        .await;
    assert!(late.unwrap_err().is_fenced());

    // It diverges while somebody elsewhere has it, from whom it is taken: nothing is mixed.
    store.away.store(true, Ordering::SeqCst);
    turn(&taken, "%say left").await;
    taken.close().await.unwrap();
    store.away.store(false, Ordering::SeqCst);
    let theirs = store.memory.acquire(&key, "elsewhere", ttl).await.unwrap();
    store.memory.append_fenced(&theirs, &key, &[entry]).await.unwrap();
    let before = store.memory.entries(&key);
    let taken = options(OnBusy::TakeOver).resume(&id).start().await.unwrap();
    assert_eq!(store.memory.entries(&key), before);
    taken.close().await.unwrap();
    assert!(!texts(&store.memory.entries(&key)).contains("%say left"));
}

/// The private directory below a directory for temporary files.
fn place_in(temporary: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(temporary).unwrap().flatten();
    let mut places = entries
        .map(|entry| entry.path())
        .filter(|path| path.join(".outrigger-owned").exists());
    places.next()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_killed_in_a_turn_loses_nothing_of_it() {
    let rig = Rig::start().await;
    let root = tempfile::tempdir().unwrap();
    let report = root.path().join("report");
    let store = Arc::new(FileStore::at(&report.with_extension("store")));
    let id = two_turns(rig.options().session_store(Arc::clone(&store) as _)).await;
    std::fs::write(report.with_extension("id"), &id).unwrap();
    let mut env: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in rig.sandbox().env(&rig.api().base_url()) {
        env.insert(name, value);
    }
    let home = root.path().join("home");
    std::fs::create_dir(&home).unwrap();
    env.insert("HOME".to_owned(), home.display().to_string());
    env.insert(
        "CLAUDE_CONFIG_DIR".to_owned(),
        home.join("config").display().to_string(),
    );
    env.insert("ANTHROPIC_API_KEY".to_owned(), ApiRequest::DUMMY_KEY.to_owned());
    let job = Job {
        way: "resumed for a turn".to_owned(),
        cli: rig.executable().to_owned(),
        cwd: rig.sandbox().project().to_owned(),
        env,
        guardian: true,
        end_detached: false,
        report: report.clone(),
    };
    let temporary = job.cwd.join("tmp");
    std::fs::create_dir(&temporary).unwrap();

    let long = "%tool Bash {\"command\":\"tail -f /dev/null\"}\n%say never";
    std::fs::write(report.with_extension("prompt"), long).unwrap();
    let mut host = Host::start(&job);
    assert_eq!(host.said(&job).await, "running");
    let place = place_in(&temporary).expect("it goes on in a private directory");
    std::fs::write(place.join(".credentials.json"), "secret").unwrap();
    // A command that begins while the CLI is killed may have left its family by then.
    until("the command", || {
        let all = living_in(&home);
        match all.values().any(|command| command.starts_with("tail -f")) {
            true => Ok(()),
            false => Err(format!("{all:#?}")),
        }
    })
    .await;
    host.kill();
    until("the guardian's work", || match names(&place) {
        left if left == [".outrigger-owned", "projects"] => Ok(()),
        left => Err(format!("{left:?}")),
    })
    .await;
    none_left(&home).await;

    std::fs::write(report.with_extension("prompt"), "%say after").unwrap();
    let mut host = Host::start(&job);
    assert_eq!(host.said(&job).await, "over");
    assert!(!place.exists());
    let texts = told(&rig);
    assert_eq!(texts[..4], said(&["one", "two"])[..]);
    assert!(texts.contains(&long.to_owned()), "{texts:#?}");
    assert!(texts.contains(&"%say after".to_owned()), "{texts:#?}");
    let key = SessionKey::new(project(&rig), &id);
    let stored = store.load(&key).await.unwrap().unwrap();
    let times = |text: &str| stored.iter().filter(|entry| entry.get().contains(text)).count();
    assert!(times("%say never") >= 1 && times("%say after") >= 1);
    assert_eq!(place_in(&temporary), None, "nothing is left");
}
