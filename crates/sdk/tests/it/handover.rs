//! A program of the superuser that runs CLIs as another user gives that user nothing but what is the CLI's: not by names that a
//! process of the user plants while sessions start, and not by links that wait in the user's home.
//!
//! What needs the superuser is told of and passed over elsewhere. The superuser's program is this test binary, started again as
//! [`host`] with another directory for temporary files; the attacker is a thread of another one, that acts as the user.

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use outrigger::options::{Auth, Delivery, Isolation, RunAs, Secret};
use outrigger::protocol::RawJson;
use outrigger::protocol::settings::Settings;
use outrigger::sessions::place::{project_dir_name, real_path};
use outrigger::sessions::store::{BoxFuture, MemoryStore, Result, SessionKey, SessionStore, StoreError};
use outrigger::{Agent, Detached, Local, OnBusy, Options, Policy};

use crate::stores::file::FileStore;
use crate::witness;

/// Nobody's, as far as the system of these tests is concerned.
const OTHER: RunAs = RunAs {
    uid: 65_534,
    gid: 65_534,
};

const ROOM: &str = "OUTRIGGER_TEST_ROOM";
const WAY: &str = "OUTRIGGER_TEST_WAY";
const RESUMED: &str = "0f6d8a6e-2f55-4a9c-8d3c-0d3a7c8f1b22";
const FIRST: &str = r#"{"type":"user","uuid":"u"}"#;
const SECRET: &str = "only the superuser may read this";

/// How often a session is started while the attacker plants links. Before it was kept from that, it took one or two starts.
const ROUNDS: usize = 25;

/// Whether other users can be acted as. Says so if not.
fn is_superuser(test: &str) -> bool {
    let is = rustix::process::geteuid().is_root();
    if !is {
        // Past the capture of the tests, which shows nothing of those that pass.
        let mut stderr = std::io::stderr();
        writeln!(stderr, "SKIPPED: {test} needs the superuser").unwrap();
    }
    is
}

/// Directories of the superuser and of the other user, with things that are only the superuser's.
struct Room {
    root: PathBuf,
}

impl Room {
    fn make() -> (tempfile::TempDir, Self) {
        let place = tempfile::tempdir().unwrap();
        let room = Self {
            root: place.path().to_owned(),
        };
        let make = |name: &str, mode: u32| {
            let path = room.path(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        std::fs::set_permissions(&room.root, std::fs::Permissions::from_mode(0o755)).unwrap();
        make("work", 0o755);
        make("tmp", 0o1777);
        make("home", 0o700);
        make("home/.claude", 0o700);
        make("hidden", 0o700);
        make("hidden/place", 0o700);
        for name in ["hidden/file", "hidden/place/file"] {
            std::fs::write(room.path(name), SECRET).unwrap();
            std::fs::set_permissions(room.path(name), std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        // Where links of the attacker lead: others may pass, so that only the rights of what is in there are in the way.
        make("victims", 0o755);
        std::fs::write(room.path("victims/file"), SECRET).unwrap();
        std::fs::set_permissions(room.path("victims/file"), std::fs::Permissions::from_mode(0o600)).unwrap();
        make("victims/place", 0o755);
        for name in ["home", "home/.claude"] {
            chown(room.path(name), Some(OTHER.uid), Some(OTHER.gid)).unwrap();
        }
        let text = r#"#!/bin/sh
cat "$CLAUDE_CONFIG_DIR/settings.json" > "$HOME/seen" 2> /dev/null
ls -ldn "$CLAUDE_CONFIG_DIR" "$CLAUDE_CONFIG_DIR"/* "$CLAUDE_CONFIG_DIR"/projects/* > "$HOME/listed" 2> /dev/null
[ -z "$OUTRIGGER_SESSION_MARK" ] || (setsid sleep 1005 > /dev/null 2>&1 < /dev/null &)
read -r line
id=${line#*'"request_id":"'}
id=${id%%'"'*}
printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{"account":{"apiKeySource":"ANTHROPIC_API_KEY"}}}}\n' "$id"
[ -z "$SAYS" ] || for file in "$CLAUDE_CONFIG_DIR"/projects/*/*.jsonl; do
    printf '%s\n' "$SAYS" >> "$file"
    printf '{"type":"transcript_mirror","filePath":"%s","entries":[%s]}\n' "$file" "$SAYS"
    touch "$HOME/said"
done
while read -r line; do :; done
"#;
        outrigger_needs::script(room.path("stand-in"), text).unwrap();
        (place, room)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn options(&self) -> Options {
        Agent::builder()
            .auth(Auth::ApiKey(Secret::new("dummy")))
            .cli_path(self.path("stand-in"))
            .cwd(self.path("work"))
            .permissions(Policy::allow_all())
            .user(OTHER)
    }

    fn at_home(&self) -> Options {
        self.options().env("HOME", self.path("home"))
    }

    /// Starts this test binary as the one or the other.
    fn start(&self, test: &str, way: &str) -> Side {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"])
            .env("TMPDIR", self.path("tmp"))
            .env(ROOM, &self.root)
            .env(WAY, way)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Side(command.spawn().unwrap())
    }

    /// That the superuser's things are as they were.
    fn assert_untouched(&self, way: &str) {
        for file in ["victims/file", "hidden/file", "hidden/place/file"] {
            let meta = self.path(file).metadata().unwrap();
            assert_eq!((meta.uid(), meta.mode() & 0o777), (0, 0o600), "{way}: {file}");
            assert_eq!(
                std::fs::read_to_string(self.path(file)).unwrap(),
                SECRET,
                "{way}: {file}"
            );
        }
        for place in [
            "victims",
            "victims/place",
            "work",
            "tmp",
            "hidden",
            "hidden/place",
        ] {
            assert_eq!(self.path(place).metadata().unwrap().uid(), 0, "{way}: {place}");
        }
        let found = |place: &str| {
            let all = std::fs::read_dir(self.path(place)).unwrap();
            let names = all.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.collect::<Vec<_>>()
        };
        assert!(
            found("victims/place").is_empty(),
            "{way}: {:?}",
            found("victims/place")
        );
        assert_eq!(found("hidden/place"), ["file"], "{way}");
        assert_eq!(found("victims").len(), 2, "{way}: {:?}", found("victims"));
    }
}

struct Side(Child);

impl Side {
    fn ends_well(&mut self) -> bool {
        self.0.wait().unwrap().success()
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // It is over already when all went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn given() -> Option<(Room, String)> {
    let root = PathBuf::from(std::env::var_os(ROOM)?);
    Some((Room { root }, std::env::var(WAY).unwrap()))
}

/// The superuser's program. Does nothing unless it is given a room.
#[test]
#[ignore = "one side of the tests in this file, which start it themselves"]
fn host() {
    let Some((room, way)) = given() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let rounds = if way.ends_with("once") { 1 } else { ROUNDS };
        if way.starts_with("stored") {
            return stored(&room, &way).await;
        }
        if way == "resumed and killed" {
            let options = resumed(&room).await;
            let transport = Local::new().detached(Detached::End);
            let session = options.transport(transport).start().await.unwrap();
            session.wait_ended().await;
        }
        for _ in 0..rounds {
            run(&room, way.trim_end_matches(" once")).await;
        }
    });
}

/// Goes on with a session of a store that outlasts this program: to its end, with the store away or not, or until it is killed.
async fn stored(room: &Room, way: &str) {
    let key = SessionKey::new(project_dir_name(&real_path(&room.path("work"))), RESUMED);
    let store = FileStore::at(&room.path("hidden/store"));
    if store.load(&key).await.unwrap().is_none() {
        let first = RawJson::from_text(FIRST).unwrap();
        store.append(&key, &[first]).await.unwrap();
    }
    let says = format!(r#"{{"type":"user","uuid":"{way}"}}"#);
    let options = room.at_home().env("SAYS", says).resume(RESUMED);
    let options = options.session_store_grace(Duration::from_millis(50));
    let options = match way {
        "stored and back" => options.session_store(Arc::new(store)),
        _ => options.session_store(Arc::new(Away(store))),
    };
    let session = options.start().await.unwrap();
    if way == "stored and killed" {
        session.wait_ended().await;
    }
    session.close().await.unwrap();
}

/// A store that has something, and takes nothing.
struct Away(FileStore);

impl SessionStore for Away {
    fn append<'a>(&'a self, _: &'a SessionKey, _: &'a [RawJson]) -> BoxFuture<'a, Result<()>> {
        let away = StoreError::failed("append", std::io::Error::other("it is away"));
        Box::pin(std::future::ready(Err(away)))
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<RawJson>>>> {
        self.0.load(key)
    }
}

/// Options that go on with a session of a store.
async fn resumed(room: &Room) -> Options {
    let store = Arc::new(MemoryStore::new());
    let project = project_dir_name(&real_path(&room.path("work")));
    let entry = |text: &str| RawJson::from_text(text).unwrap();
    let key = SessionKey::new(project, RESUMED);
    let part = key.with_subpath("subagents/agent-1");
    for (key, text) in [
        (&key, r#"{"type":"user","uuid":"u"}"#),
        (&part, r#"{"type":"user","uuid":"v"}"#),
    ] {
        store.append(key, &[entry(text)]).await.unwrap();
    }
    room.at_home().session_store(store).resume(RESUMED)
}

async fn run(room: &Room, way: &str) {
    let started = match way {
        "resumed" => resumed(room).await.start().await,
        "hermetic" => room.options().isolation(Isolation::Hermetic).start().await,
        "files" => {
            let mut settings = Settings::default();
            settings.model = Some("opus".into());
            let options = room.at_home().settings(settings);
            options.settings_delivery(Delivery::File).start().await
        }
        "leased" => room.at_home().resume(RESUMED).lease(OnBusy::Fail).start().await,
        "parked" => {
            // What the attacker took away is no reason to stop.
            if let Ok(spare) = room.at_home().prewarm().await {
                spare.close().await.unwrap();
            }
            return;
        }
        "history" => {
            let session = room.at_home().resume(RESUMED).start().await.unwrap();
            let told = match session.history().await {
                Ok(history) => format!("{:?}", crate::history::frames(history).await),
                Err(error) => error.to_string(),
            };
            std::fs::write(room.path("hidden/told"), told).unwrap();
            session.close().await.unwrap();
            return;
        }
        other => panic!("no such way: {other}"),
    };
    match started {
        Ok(session) => drop(session.close().await.unwrap()),
        // The attacker can spoil what is the user's own.
        Err(error) => assert!(way == "leased", "{error}"),
    }
}

/// A process of the other user, which plants links in all that it can.
#[test]
#[ignore = "one side of the tests in this file, which start it themselves"]
fn attacker() {
    use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

    let Some((room, way)) = given() else { return };
    let uid = rustix::process::Uid::from_raw(OTHER.uid);
    let gid = rustix::process::Gid::from_raw(OTHER.gid);
    set_thread_groups(&[]).unwrap();
    set_thread_res_gid(gid, gid, gid).unwrap();
    set_thread_res_uid(uid, uid, uid).unwrap();
    let (file, place) = (room.path("victims/file"), room.path("victims/place"));
    let below = |directory: &Path| {
        let files = [
            ".claude.json",
            ".config.json",
            "settings.json",
            ".credentials.json",
            "planted",
        ];
        let places = [
            "projects",
            "home",
            "tmp",
            ".config",
            "config",
            "spares",
            "outrigger",
        ];
        for (names, target) in [(&files[..], &file), (&places[..], &place)] {
            for name in names {
                let path = directory.join(name);
                // What is there already goes out of the way, if it can.
                if path.symlink_metadata().is_ok_and(|meta| !meta.is_symlink()) {
                    let _ = std::fs::rename(&path, directory.join(format!("{name}.away")));
                }
                let _ = symlink(target, &path);
            }
        }
    };
    loop {
        for entry in std::fs::read_dir(room.path("tmp")).unwrap().flatten() {
            let path = entry.path();
            for inner in ["", "config", "projects", "home", "home/.claude", "home/.local"] {
                below(&path.join(inner));
            }
            // The directory itself, or the file.
            let away = path.with_extension("away");
            if std::fs::rename(&path, away).is_ok() {
                let _ = symlink(&place, &path);
            }
        }
        if way == "parked" || way == "leased" {
            below(&room.path("home/.claude"));
            for name in ["spares", "outrigger"] {
                let _ = std::fs::remove_file(room.path("home/.claude").join(name));
            }
            let _ = std::fs::rename(room.path("home/.claude"), room.path("home/away"));
            let _ = symlink(&place, room.path("home/.claude"));
            let _ = std::fs::remove_file(room.path("home/.claude"));
            let _ = std::fs::rename(room.path("home/away"), room.path("home/.claude"));
        }
    }
}

/// Starts sessions while the attacker is at work.
fn raced(way: &str) {
    if !is_superuser(&format!("handover, {way}")) {
        return;
    }
    let (_kept, room) = Room::make();
    let attacker = room.start("handover::attacker", way);
    let done = room.start("handover::host", way).ends_well();
    drop(attacker);
    room.assert_untouched(way);
    assert!(done, "{way}: sessions start all the same");
}

#[test]
fn a_resumed_session_gives_nothing_else_away() {
    raced("resumed");
}

#[test]
fn a_hermetic_session_gives_nothing_else_away() {
    raced("hermetic");
}

#[test]
fn private_files_give_nothing_else_away() {
    raced("files");
}

#[test]
fn a_spare_gives_nothing_else_away() {
    raced("parked");
}

#[test]
fn a_lease_gives_nothing_else_away() {
    raced("leased");
}

/// What waits in the home: root reads it with the rights of the user.
#[test]
fn links_in_a_home_lead_nowhere() {
    if !is_superuser("links in a home") {
        return;
    }
    let (_kept, room) = Room::make();
    let settings = room.path("home/.claude/settings.json");
    symlink(room.path("victims/file"), &settings).unwrap();
    assert!(room.start("handover::host", "resumed once").ends_well());
    assert_eq!(std::fs::read_to_string(room.path("home/seen")).unwrap(), "");

    // One that the user may read is followed.
    std::fs::remove_file(&settings).unwrap();
    std::fs::write(room.path("work/settings.json"), r#"{"model":"opus"}"#).unwrap();
    symlink(room.path("work/settings.json"), &settings).unwrap();
    assert!(room.start("handover::host", "resumed once").ends_well());
    assert_eq!(
        std::fs::read_to_string(room.path("home/seen")).unwrap(),
        r#"{"model":"opus"}"#
    );
    // And all of it is the user's, when the CLI starts.
    let listed = std::fs::read_to_string(room.path("home/listed")).unwrap();
    assert!(listed.lines().count() >= 4, "{listed}");
    for line in listed.lines() {
        assert_eq!(line.split_whitespace().nth(2), Some("65534"), "{listed}");
    }
    let left: Vec<_> = std::fs::read_dir(room.path("tmp")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    room.assert_untouched("links in a home");
}

/// The transcript in the home may be a link to another user's: the history of a session is read with the rights of its user.
#[test]
fn a_history_tells_nothing_that_the_user_may_not_read() {
    if !is_superuser("the history of another user's session") {
        return;
    }
    let (_kept, room) = Room::make();
    let line = format!(
        r#"{{"parentUuid":null,"isSidechain":false,"type":"user","uuid":"a","sessionId":"{RESUMED}","timestamp":"2026-01-01T00:00:00.000Z","message":{{"role":"user","content":"{SECRET}"}}}}"#
    );
    let hidden = room.path("victims/transcript");
    std::fs::write(&hidden, line + "\n").unwrap();
    std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(0o600)).unwrap();
    let project = room
        .path("home/.claude/projects")
        .join(project_dir_name(&real_path(&room.path("work"))));
    std::fs::create_dir_all(&project).unwrap();
    for path in [project.parent().unwrap(), &project] {
        chown(path, Some(OTHER.uid), Some(OTHER.gid)).unwrap();
    }
    let file = project.join(format!("{RESUMED}.jsonl"));
    symlink(&hidden, &file).unwrap();
    let told = || {
        assert!(room.start("handover::host", "history once").ends_well());
        std::fs::read_to_string(room.path("hidden/told")).unwrap()
    };
    let linked = told();
    assert!(!linked.contains(SECRET), "{linked}");

    // What is the user's is told.
    std::fs::remove_file(&file).unwrap();
    std::fs::copy(&hidden, &file).unwrap();
    chown(&file, Some(OTHER.uid), Some(OTHER.gid)).unwrap();
    let own = told();
    assert!(own.contains(SECRET), "{own}");
}

/// The guardian, which has the rights of the user, ends the CLI and what it detached, and removes what the user had. What is left is
/// the superuser's, and goes with the next start.
#[tokio::test]
async fn a_killed_program_leaves_nothing_of_another_user() {
    if !is_superuser("the guardian of another user's CLI") {
        return;
    }
    let (_kept, room) = Room::make();
    let home = room.path("home");
    std::fs::write(home.join(".claude/settings.json"), r#"{"model":"opus"}"#).unwrap();
    let mut host = room.start("handover::host", "resumed and killed");
    witness::until("the CLI, and what it detached", || {
        let all = witness::living_in(&home);
        let wanted = ["stand-in", "sleep 1005"];
        match wanted
            .iter()
            .all(|name| all.values().any(|command| command.contains(name)))
        {
            true => Ok(()),
            false => Err(format!("{all:#?}")),
        }
    })
    .await;
    let entries = |path: &Path| -> Vec<PathBuf> {
        let all = std::fs::read_dir(path).into_iter().flatten().flatten();
        all.map(|entry| entry.path()).collect()
    };
    let places = entries(&room.path("tmp"));
    let config = places[0].join("config");
    assert!(
        places.len() == 1 && config.join("settings.json").exists(),
        "{places:?}"
    );
    assert_eq!(places[0].metadata().unwrap().uid(), 0);
    host.0.kill().unwrap();
    host.ends_well();
    witness::none_left(&home).await;
    witness::until("an empty place", || match entries(&config) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("{left:?}")),
    })
    .await;
    assert!(room.start("handover::host", "resumed once").ends_well());
    assert_eq!(entries(&room.path("tmp")), Vec::<PathBuf>::new());
    room.assert_untouched("killed");
}

/// Links that wait where a lock or a state is to be written, to a file that is not there yet.
#[test]
fn a_lease_makes_no_file_elsewhere() {
    if !is_superuser("a lease in another user's home") {
        return;
    }
    let (_kept, room) = Room::make();
    let leases = room.path("home/.claude/outrigger/leases");
    std::fs::create_dir_all(&leases).unwrap();
    for path in [room.path("home/.claude/outrigger"), leases.clone()] {
        chown(path, Some(OTHER.uid), Some(OTHER.gid)).unwrap();
    }
    symlink(
        room.path("victims/place/new"),
        leases.join(format!("{RESUMED}.lock")),
    )
    .unwrap();
    assert!(room.start("handover::host", "leased once").ends_well());
    room.assert_untouched("lease");
}

/// A kept home, or the place of spares, that the user may not make.
#[tokio::test]
async fn what_is_kept_is_made_with_the_rights_of_the_user() {
    if !is_superuser("a kept home for another user") {
        return;
    }
    let (_kept, room) = Room::make();
    let options = || room.options().isolation(Isolation::Hermetic);
    let error = options().hermetic_home(room.path("work/kept")).start().await;
    let text = error.unwrap_err().to_string();
    assert!(text.contains("rights of user 65534"), "{text}");
    assert!(!room.path("work/kept").exists());

    let kept = room.path("home/kept");
    let session = options().hermetic_home(&kept).start().await.unwrap();
    session.close().await.unwrap();
    assert_eq!(kept.join("home/.claude").metadata().unwrap().uid(), OTHER.uid);

    // By a link of the user, not even an empty directory is made elsewhere.
    symlink(room.path("victims/place"), room.path("home/link")).unwrap();
    let elsewhere = options().hermetic_home(room.path("home/link/kept"));
    elsewhere.start().await.unwrap_err();
    room.assert_untouched("kept");
}

/// The private places that are there.
fn places(room: &Room) -> Vec<PathBuf> {
    let all = std::fs::read_dir(room.path("tmp")).unwrap().flatten();
    all.map(|entry| entry.path()).collect()
}

/// What lies below, with its owner and its mode.
fn below(path: &Path) -> Vec<(PathBuf, u32, u32)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        all.push((path.clone(), meta.uid(), meta.mode() & 0o777));
        if meta.is_dir() {
            all.extend(below(&path));
        }
    }
    all
}

/// What the store has.
fn told(room: &Room) -> String {
    let all = std::fs::read_dir(room.path("hidden/store")).unwrap().flatten();
    let text = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path()).unwrap_or_default();
    all.map(text).collect()
}

/// A place whose store lacks what was said: it is the user's alone, and nothing but transcripts is in it.
#[track_caller]
fn assert_kept(room: &Room) -> PathBuf {
    let places = places(room);
    assert_eq!(places.len(), 1, "{places:?}");
    let meta = places[0].metadata().unwrap();
    assert_eq!((meta.uid(), meta.mode() & 0o777), (0, 0o710));
    let config = places[0].join("config");
    let names: Vec<_> = std::fs::read_dir(&config)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["projects"]);
    for (path, uid, mode) in below(&places[0]) {
        let is_ours = path.ends_with(".outrigger-owned");
        assert_eq!(uid, if is_ours { 0 } else { OTHER.uid }, "{}", path.display());
        assert!(is_ours || mode & 0o077 == 0, "{}: {mode:o}", path.display());
    }
    places[0].clone()
}

/// Has a program end, or be killed, before its store has what the CLI wrote.
async fn left_behind(room: &Room, way: &str) -> PathBuf {
    let mut host = room.start("handover::host", way);
    if way == "stored and killed" {
        let said = room.path("home/said");
        witness::until("what the CLI says", || match said.exists() {
            true => Ok(()),
            false => Err("nothing".to_owned()),
        })
        .await;
        host.0.kill().unwrap();
        host.ends_well();
        witness::none_left(&room.path("home")).await;
        let config = places(room)[0].join("config");
        witness::until("the guardian's work", || match below(&config) {
            left if left
                .iter()
                .all(|(path, ..)| path.starts_with(config.join("projects"))) =>
            {
                Ok(())
            }
            left => Err(format!("{left:?}")),
        })
        .await;
    } else {
        assert!(host.ends_well());
    }
    assert!(!told(room).contains(way), "the store lacks it");
    assert_kept(room)
}

/// What a store did not take of another user's session stays that user's alone, and is brought at the next start.
#[tokio::test]
async fn what_a_store_lacks_of_another_users_session_is_kept_and_brought() {
    if !is_superuser("another user's session whose store is away") {
        return;
    }
    for way in ["stored and away", "stored and killed"] {
        let (_kept, room) = Room::make();
        left_behind(&room, way).await;
        assert!(room.start("handover::host", "stored and back").ends_well());
        assert_eq!(places(&room), Vec::<PathBuf>::new(), "{way}");
        let told = told(&room);
        assert!(
            told.contains(way) && told.contains("stored and back"),
            "{way}: {told}"
        );
        room.assert_untouched(way);
    }
}

/// The user has the place that is kept, and can put links there: none is read from, and none removed through.
#[tokio::test]
async fn links_in_what_is_kept_lead_nowhere() {
    if !is_superuser("links in what is kept") {
        return;
    }
    let project = |room: &Room| project_dir_name(&real_path(&room.path("work")));
    for target in ["file", "project", "projects"] {
        let (_kept, room) = Room::make();
        let place = left_behind(&room, "stored and away").await;
        // Where the links lead, others may look, but only the superuser may read.
        let name = format!("{RESUMED}.jsonl");
        let aim = room.path("hidden").join(project(&room));
        std::fs::create_dir(&aim).unwrap();
        std::fs::write(
            aim.join(&name),
            // It goes on where the store ends: followed, it would be brought.
            format!("{FIRST}\n{{\"type\":\"user\",\"uuid\":\"{SECRET}\"}}\n"),
        )
        .unwrap();
        std::fs::set_permissions(aim.join(&name), std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::set_permissions(room.path("hidden"), std::fs::Permissions::from_mode(0o711)).unwrap();
        let projects = place.join("config/projects");
        let (link, to) = match target {
            "file" => (projects.join(project(&room)).join(&name), aim.join(&name)),
            "project" => (projects.join(project(&room)), aim.clone()),
            _ => (projects, room.path("hidden")),
        };
        std::fs::rename(&link, place.join("config/away")).unwrap();
        symlink(&to, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(OTHER.uid), Some(OTHER.gid)).unwrap();
        symlink(room.path("hidden/place"), place.join("config/planted")).unwrap();

        assert!(
            room.start("handover::host", "stored and back").ends_well(),
            "{target}"
        );
        assert!(!told(&room).contains(SECRET), "{target}");
        assert!(aim.join(&name).exists(), "{target}");
        room.assert_untouched(target);
    }
}
