//! What several processes share by values of a store, and the gate of `outrigger-fleet` over it.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use outrigger::testing::Simulated;
use outrigger_fleet::GuardedTurn;
use outrigger_fleet::gate::{Gate, GateLimits, Visitor};
use outrigger_needs::needs;
use outrigger_sessions::store::ValueStore;
use outrigger_stores::{PostgresStore, RedisStore};

use crate::postgres::{config, connect, sql};
use crate::servers;

const STORE: &str = "OUTRIGGER_TEST_GATE_STORE";
const API: &str = "OUTRIGGER_TEST_GATE_API";

/// Turns at once, in all processes together.
const RUNNING: usize = 10;

async fn open(store: &str) -> Arc<dyn ValueStore> {
    if store.starts_with("redis") || store.starts_with("unix") {
        return Arc::new(RedisStore::connect(store).await.unwrap());
    }
    Arc::new(PostgresStore::connect(store).await.unwrap())
}

async fn gate(store: Arc<dyn ValueStore>) -> Gate {
    let mut limits = GateLimits::default();
    limits.max_running = RUNNING;
    limits.lease = Duration::from_secs(3);
    limits.poll = Duration::from_millis(20);
    Gate::over(store, "account", limits).await.unwrap()
}

/// The contract of a value store, with two connections to one store.
async fn keeps_values(one: &dyn ValueStore, two: &dyn ValueStore) {
    let none = one.read("a").await.unwrap();
    assert_eq!((none.version, none.text.as_str()), (0, ""));
    assert!(!one.replace("a", 7, "x").await.unwrap(), "there is no version 7");
    assert!(one.replace("a", 0, "first").await.unwrap());
    assert!(!two.replace("a", 0, "first, too").await.unwrap());
    let text = "second \u{0}'\"{}\n\u{10ffff}".replace('\u{0}', "\\u0000");
    assert!(two.replace("a", 1, &text).await.unwrap());
    let read = one.read("a").await.unwrap();
    assert_eq!((read.version, read.text), (2, text));
    assert_eq!(one.read("b").await.unwrap().version, 0);
    let later = two.read("a").await.unwrap();
    assert!(later.now >= none.now && none.now > Duration::from_secs(1_700_000_000));

    // Many add to one number, and no addition is lost.
    let add = |store| async move {
        let store: &dyn ValueStore = store;
        for _ in 0..20 {
            loop {
                let read = store.read("sum").await.unwrap();
                let sum: u64 = read.text.parse().unwrap_or(0);
                if store
                    .replace("sum", read.version, &(sum + 1).to_string())
                    .await
                    .unwrap()
                {
                    break;
                }
            }
        }
    };
    join_all([one, two, one, two].map(add)).await;
    let sum = one.read("sum").await.unwrap();
    assert_eq!((sum.version, sum.text.as_str()), (80, "80"));
}

/// What a process does that [`two_processes`] started: 25 sessions with 4 turns each, or, without an API, it takes all places and keeps
/// them. Returns at once in any other.
#[test]
fn a_process() {
    let Ok(store) = std::env::var(STORE) else { return };
    // It ends with the one that started it, however that ends.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let gate = gate(open(&store).await).await;
        let Ok(api) = std::env::var(API) else {
            let passes = join_all((0..RUNNING).map(|_| gate.enter(Visitor::new("greedy")))).await;
            assert!(passes.iter().all(Result::is_ok));
            writeln!(std::io::stdout(), "it has all places").unwrap();
            return std::future::pending().await;
        };
        let cli = Simulated::agent(|agent| agent);
        join_all((0..25).map(|index| work(&gate, &cli, &api, index))).await;
    });
}

async fn work(gate: &Gate, cli: &Simulated, api: &str, index: usize) {
    let session = cli.options().start().await.unwrap();
    let mut answered = 0;
    while answered < 4 {
        let pass = gate
            .enter(Visitor::new(format!("{}-{index}", std::process::id())))
            .await
            .unwrap();
        let api = api.to_owned();
        let asked = tokio::task::spawn_blocking(move || {
            let mut api = BufReader::new(TcpStream::connect(api).unwrap());
            let line = line(&mut api);
            (api, line)
        });
        let (mut api, said) = asked.await.unwrap();
        // The API hears that the turn is over before its place is free.
        let over = async move {
            let told = tokio::task::spawn_blocking(move || {
                writeln!(api.get_mut(), "over").unwrap();
                line(&mut api)
            });
            assert_eq!(told.await.unwrap(), "noted");
        };
        match said.strip_prefix("429 ") {
            Some(wait) => {
                over.await;
                gate.close_for(Duration::from_millis(wait.parse().unwrap()));
            }
            None => {
                // So that turns overlap.
                tokio::time::sleep(Duration::from_millis(10)).await;
                over.await;
                let turn = session.prompt("%say done").await.unwrap();
                let outcome = GuardedTurn::new(turn).pass(pass).outcome().await.unwrap();
                assert!(outcome.is_success(), "{outcome:?}");
                answered += 1;
            }
        }
    }
    session.close().await.unwrap();
}

fn line(from: &mut impl BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    line.trim().to_owned()
}

fn process(store: &str, api: Option<&str>) -> Child {
    let test = format!("{}::a_process", module_path!().split_once("::").unwrap().1);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", &test, "--nocapture", "--test-threads=1"])
        .env(STORE, store)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    if let Some(api) = api {
        command.env(API, api);
    }
    command.spawn().unwrap()
}

/// What an API sees.
#[derive(Debug, Default)]
struct Seen {
    answered: usize,
    /// Turns that run, and the most that ever did at once.
    running: usize,
    most: usize,
    /// Until when it refuses everything, once it has begun to.
    refuses: Option<Instant>,
    refused: usize,
}

/// An API that answers forty requests, and refuses all in the two seconds after them.
fn api() -> (String, Arc<Mutex<Seen>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let shared = Arc::clone(&seen);
    // It ends with the process of the test.
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let (connection, seen) = (connection.unwrap(), Arc::clone(&shared));
            std::thread::spawn(move || answer(&mut BufReader::new(connection), &seen));
        }
    });
    (address, seen)
}

/// Answers one request, and keeps its turn for running until it is over.
fn answer(connection: &mut BufReader<TcpStream>, seen: &Mutex<Seen>) {
    let said = {
        let mut seen = seen.lock().unwrap();
        seen.running += 1;
        seen.most = seen.most.max(seen.running);
        if seen.answered == 40 && seen.refuses.is_none() {
            seen.refuses = Some(Instant::now() + Duration::from_secs(2));
        }
        let left = seen
            .refuses
            .map(|until| until.saturating_duration_since(Instant::now()))
            .filter(|left| !left.is_zero());
        match left {
            Some(left) => {
                seen.refused += 1;
                format!("429 {}", left.as_millis() + 1)
            }
            None => {
                seen.answered += 1;
                "200".to_owned()
            }
        }
    };
    writeln!(connection.get_mut(), "{said}").unwrap();
    assert_eq!(line(connection), "over");
    seen.lock().unwrap().running -= 1;
    writeln!(connection.get_mut(), "noted").unwrap();
}

/// Fifty sessions in two processes with four turns each. No more run at once than the limit of both together. While the API refuses, it sees the turns that had begun or were just being
/// admitted, and no more: at most twice the turns that run at once. Then everybody gets in.
fn two_processes(store: &str) {
    let (address, seen) = api();
    let processes = [process(store, Some(&address)), process(store, Some(&address))];
    for mut process in processes {
        // Its input stays open: a process ends with it.
        let _input = process.stdin.take();
        let ended = process.wait_with_output().unwrap();
        assert!(
            ended.status.success(),
            "{}",
            String::from_utf8_lossy(&ended.stdout)
        );
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.answered, 200);
    assert!(seen.most > 1 && seen.most <= RUNNING, "{seen:?}");
    assert!(seen.refused > 0 && seen.refused <= 2 * RUNNING, "{seen:?}");
}

/// A process that is killed with all places leaves them to others, by the clock of the store.
async fn a_killed_process_frees_its_places(store: &str) {
    let mut greedy = process(store, None);
    let mut lines = BufReader::new(greedy.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("it has all places")));
    let gate = gate(open(store).await).await;
    let entering = gate.enter(Visitor::new("modest").patience(Duration::from_millis(300)));
    let error = entering.await.unwrap_err();
    assert!(error.to_string().contains("10 turns run"), "{error}");
    greedy.kill().unwrap();
    greedy.wait().unwrap();
    let entering = gate.enter(Visitor::new("modest").patience(Duration::from_secs(60)));
    drop(entering.await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_share_a_gate_over_postgres() {
    needs!(outrigger_needs::postgres());
    let server = servers::postgres::postgres();
    sql(&server, "CREATE SCHEMA gates").await;
    let (one, two) = (
        connect(&server, "gates").await.unwrap(),
        connect(&server, "gates").await.unwrap(),
    );
    keeps_values(&one, &two).await;
    let store = config(&server, "gates");
    a_killed_process_frees_its_places(&store).await;
    tokio::task::spawn_blocking(move || two_processes(&store))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_share_a_gate_over_redis() {
    needs!(outrigger_needs::redis());
    let server = servers::redis::redis(&[]);
    let store = server.redis_url();
    let (one, two) = (
        RedisStore::connect(&store).await.unwrap(),
        RedisStore::connect(&store).await.unwrap(),
    );
    keeps_values(&one, &two).await;
    a_killed_process_frees_its_places(&store).await;
    tokio::task::spawn_blocking(move || two_processes(&store))
        .await
        .unwrap();
}
