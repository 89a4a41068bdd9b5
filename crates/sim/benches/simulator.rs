//! What a simulated `claude` costs: a turn in memory, the executable, and many sessions at once.
//!
//! `cargo bench -p outrigger-sim --bench simulator` measures all of it, in turn with what it is compared with: a turn with a bare
//! exchange of lines over the same pipes, the executable with starting `true`.

#![expect(clippy::print_stdout, reason = "a program for a terminal")]
#![cfg_attr(
    target_os = "linux",
    expect(clippy::unwrap_used, reason = "its only input is its own output")
)]

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("Memory and processes are measured on Linux only.");
}

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use outrigger_sim::peer::{ClientIo, Running};
    use outrigger_sim::script::{Rule, Script, Times};
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, DuplexStream, Lines};

    const PROMPT: &str = "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"go\"}}\n";

    pub(super) fn main() {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap();
        println!("load average before: {}", load.trim());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(turns());
        executable();
        runtime.block_on(crowd(1_000));
    }

    fn script() -> Script {
        Script::new().rule(Rule::any().times(Times::Any).say("Done."))
    }

    /// A client of a session in memory.
    struct Client {
        stdin: DuplexStream,
        lines: Lines<tokio::io::BufReader<DuplexStream>>,
        _agent: Running,
    }

    impl Client {
        fn new(script: &Script) -> Self {
            let (ClientIo { stdin, stdout, .. }, agent) = script.spawn_in_memory().unwrap();
            let lines = tokio::io::BufReader::new(stdout).lines();
            Self {
                stdin,
                lines,
                _agent: agent,
            }
        }

        async fn turn(&mut self) {
            self.stdin.write_all(PROMPT.as_bytes()).await.unwrap();
            while let Some(line) = self.lines.next_line().await.unwrap() {
                if line.starts_with("{\"type\":\"result\"") || line.contains("\"type\":\"result\"") {
                    break;
                }
            }
        }
    }

    fn median(mut times: Vec<Duration>) -> Duration {
        times.sort_unstable();
        times[times.len() / 2]
    }

    fn us(time: Duration) -> f64 {
        time.as_secs_f64() * 1e6
    }

    /// Turns one after another, sessions one after another, and lines that are only sent back.
    async fn turns() {
        let (mut echoes, mut turns, mut sessions) = (Vec::new(), Vec::new(), Vec::new());
        let (client, peer) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move {
            let (read, mut write) = tokio::io::split(peer);
            let mut lines = tokio::io::BufReader::new(read).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let _ = write.write_all(format!("{line}\n").as_bytes()).await;
            }
        });
        let (read, mut write) = tokio::io::split(client);
        let mut lines = tokio::io::BufReader::new(read).lines();
        let script = script();
        let mut client = Client::new(&script);
        for round in 0..1_100 {
            let began = Instant::now();
            write.write_all(PROMPT.as_bytes()).await.unwrap();
            lines.next_line().await.unwrap();
            let echo = began.elapsed();
            let began = Instant::now();
            client.turn().await;
            let turn = began.elapsed();
            let began = Instant::now();
            Client::new(&script).turn().await;
            let session = began.elapsed();
            // The first rounds warm up.
            if round >= 100 {
                echoes.push(echo);
                turns.push(turn);
                sessions.push(session);
            }
        }
        let (echo, turn, session) = (median(echoes), median(turns), median(sessions));
        println!("in memory, medians of 1,000:");
        println!("  a line sent back           {:8.1} us", us(echo));
        println!(
            "  a scripted turn            {:8.1} us   x {:.0}",
            us(turn),
            us(turn) / us(echo)
        );
        println!(
            "  a session of one turn      {:8.1} us   x {:.0}",
            us(session),
            us(session) / us(echo)
        );
    }

    /// The executable from its start to its first result, in turn with `true` from its start to its end.
    fn executable() {
        let place = std::env::temp_dir().join(format!("outrigger-sim-bench-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        let script = place.join("script.yaml");
        std::fs::write(&script, "prompts:\n  - prompt: go\n    steps: [say: Done.]\n").unwrap();
        let (mut nothing, mut first, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..220 {
            let began = Instant::now();
            Command::new("true")
                .env_clear()
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .output()
                .unwrap();
            let bare = began.elapsed();
            let began = Instant::now();
            let mut child = Command::new(env!("CARGO_BIN_EXE_outrigger-sim"))
                .args([
                    "--output-format",
                    "stream-json",
                    "--input-format",
                    "stream-json",
                    "--verbose",
                ])
                .args(["--permission-prompt-tool", "stdio"])
                .env_clear()
                .env("HOME", &place)
                .env("OUTRIGGER_SIM_SCRIPT", &script)
                .current_dir(&place)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(PROMPT.as_bytes()).unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            while !lines.next().unwrap().unwrap().contains("\"type\":\"result\"") {}
            let result = began.elapsed();
            drop(stdin);
            assert!(child.wait().unwrap().success());
            let end = began.elapsed();
            if round >= 20 {
                nothing.push(bare);
                first.push(result);
                whole.push(end);
            }
        }
        std::fs::remove_dir_all(&place).unwrap();
        let (bare, result, end) = (median(nothing), median(first), median(whole));
        println!("the executable, medians of 200:");
        println!("  `true`, to its end         {:8.2} ms", us(bare) / 1e3);
        println!(
            "  to the first result        {:8.2} ms   x {:.1}",
            us(result) / 1e3,
            us(result) / us(bare)
        );
        println!(
            "  to its end                 {:8.2} ms   x {:.1}",
            us(end) / 1e3,
            us(end) / us(bare)
        );
    }

    fn resident() -> u64 {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
        pages * 4096
    }

    /// Sessions that are all open at once, each with a turn behind it.
    async fn crowd(count: usize) {
        let script = script();
        let before = resident();
        let began = Instant::now();
        let mut clients: Vec<Client> = (0..count).map(|_| Client::new(&script)).collect();
        let turns: Vec<_> = clients
            .drain(..)
            .map(|mut client| {
                tokio::spawn(async move {
                    client.turn().await;
                    client
                })
            })
            .collect();
        for turn in turns {
            clients.push(turn.await.unwrap());
        }
        let took = began.elapsed();
        let grown = resident().saturating_sub(before);
        println!("{count} sessions at once, each with its first turn:");
        println!(
            "  all of it                  {:8.1} ms   {:.3} ms a session",
            us(took) / 1e3,
            us(took) / 1e3 / count as f64
        );
        println!(
            "  resident memory            {:8.1} MB   {:.1} KB a session",
            grown as f64 / 1e6,
            grown as f64 / 1e3 / count as f64
        );
    }
}
