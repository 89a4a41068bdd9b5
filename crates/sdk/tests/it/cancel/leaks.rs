//! What is left of the process's own means once everything is dropped: tasks, open files, child processes, temporary files.
//!
//! The count is of the whole process, so it runs in one of its own: this test program starts itself again.

/// What [`complete`](super::complete) finds here.
pub(super) const COVERED: &[&str] = &[
    "Doctor::examine",
    "Prompt::file",
    "Prompt::image_file",
    "RealCli::directives",
    "RealCli::script",
    "RealCli::script_file",
    "RealCli::with_api",
    "Simulated::script_file",
];

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::time::Duration;

    use outrigger::discover::Doctor;
    use outrigger::env::Surroundings;
    use outrigger::options::{Auth, Secret};
    use outrigger::testing::sim::api::MessagesApi;
    use outrigger::testing::sim::script::Script;
    use outrigger::testing::{RealCli, Simulated};
    use outrigger::{Agent, Options, Prompt};
    use tokio::runtime::Handle;
    use tokio::time::{sleep, timeout};

    use super::super::{Cancel, ENOUGH, When};

    /// Set for the process in which things are counted; its value is that process's own temporary directory.
    const ALONE: &str = "OUTRIGGER_TEST_LEAKS";

    #[test]
    fn nothing_of_a_process_is_left_behind() {
        let directory = tempfile::tempdir().unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "cancel::leaks::linux::counted_in_a_process_of_its_own",
                "--nocapture",
            ])
            .env(ALONE, directory.path())
            .env("TMPDIR", directory.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("counted to the end"), "{said}");
    }

    /// Does nothing unless it is alone; see [`nothing_of_a_process_is_left_behind`].
    #[tokio::test]
    async fn counted_in_a_process_of_its_own() {
        let Some(directory) = std::env::var_os(ALONE).map(PathBuf::from) else {
            return;
        };
        let cli = directory.join("claude");
        write_script(&cli, CLI);
        let slow = directory.join("slow");
        write_script(&slow, "#!/bin/sh\nsleep 0.1\nexec sleep 600\n");
        let file = directory.join("picture.png");
        std::fs::write(&file, b"no picture").unwrap();
        // What is opened on first use is there from here on.
        drop(options(&cli).start().await.unwrap());
        examine(
            &slow,
            Cancel {
                polls: 1,
                when: When::Later,
            },
        )
        .await;
        sleep(Duration::from_millis(500)).await;
        let before = Held::now(&directory);

        for when in [When::AtOnce, When::Woken, When::Later] {
            for polls in 0..ENOUGH {
                let cancel = Cancel { polls, when };
                let session = cancel.of(options(&cli).start()).await;
                let done = session.is_some();
                if let Some(session) = session {
                    drop(session.unwrap());
                }
                before.is_back(&directory, &format!("start, {cancel:?}")).await;
                if done {
                    break;
                }
            }
            for polls in 0..3 {
                let cancel = Cancel { polls, when };
                cancel.of(Prompt::text("look").file(&file)).await;
                before.is_back(&directory, &format!("file, {cancel:?}")).await;
                cancel.of(Prompt::text("look").image_file(&file)).await;
                before
                    .is_back(&directory, &format!("image_file, {cancel:?}"))
                    .await;
            }
        }
        for polls in 0..6 {
            for when in [When::AtOnce, When::Later] {
                let cancel = Cancel { polls, when };
                examine(&slow, cancel).await;
                before.is_back(&directory, &format!("examine, {cancel:?}")).await;
            }
        }
        let script = directory.join("script.yaml");
        std::fs::write(&script, "prompts: [{steps: [say: hello]}]").unwrap();
        let before = Held::now(&directory);
        for when in [When::AtOnce, When::Woken, When::Later] {
            for polls in 0..ENOUGH {
                let cancel = Cancel { polls, when };
                let directives = cancel.of(RealCli::directives()).await.map(Result::unwrap);
                let done = directives.is_some();
                drop(directives);
                let scripted = Script::from_file(&script).unwrap();
                drop(cancel.of(RealCli::script(scripted)).await.map(Result::unwrap));
                drop(cancel.of(RealCli::script_file(&script)).await.map(Result::unwrap));
                let api = MessagesApi::builder().start().await.unwrap();
                drop(cancel.of(RealCli::with_api(api)).await.map(Result::unwrap));
                drop(
                    cancel
                        .of(Simulated::script_file(&script))
                        .await
                        .map(Result::unwrap),
                );
                before
                    .is_back(&directory, &format!("a CLI for tests, {cancel:?}"))
                    .await;
                if done {
                    break;
                }
            }
        }

        // Readers that are far behind, with the rest on disk.
        let session = options(&cli).buffer_bytes(64 * 1024).start().await.unwrap();
        let (frames, ambient) = (session.frames(), session.ambient());
        let turn = session.prompt("much").await.unwrap();
        timeout(Duration::from_secs(20), async {
            while session.stats().spilled_bytes == 0 {
                sleep(Duration::from_millis(20)).await;
            }
        })
        .await
        .expect("frames go over to the disk");
        assert!(Held::now(&directory) != before);
        drop((frames, ambient, turn, session));
        before.is_back(&directory, "readers far behind").await;
        println!("counted to the end");
    }

    /// Answers `initialize`, and a prompt by much that nobody reads; ends with its input.
    const CLI: &str = r#"#!/bin/sh
IFS= read -r line || exit 0
id=$(printf '%s' "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{"commands":[],"models":[],"account":{"apiKeySource":"ANTHROPIC_API_KEY"}}}}\n' "$id"
IFS= read -r line || exit 0
head -c 2000000 /dev/zero | tr '\0' x | fold -w 1000 | sed 's/.*/{"type":"assistant","message":"&"}/'
exec cat >/dev/null
"#;

    fn write_script(path: &Path, text: &str) {
        outrigger_needs::script(path, text).unwrap();
    }

    fn options(cli: &Path) -> Options {
        Agent::builder()
            .auth(Auth::ApiKey(Secret::new("simulated")))
            .cli_path(cli)
    }

    async fn examine(slow: &Path, cancel: Cancel) {
        let surroundings = Surroundings::new([("PATH".into(), "/usr/bin:/bin".into())], "/");
        let doctor = Doctor::default()
            .cli_path(slow)
            .surroundings(surroundings)
            .deadline(Duration::from_secs(1));
        cancel.of(doctor.examine()).await;
    }

    /// What this process holds.
    #[derive(Debug, PartialEq)]
    struct Held {
        tasks: usize,
        files: Vec<PathBuf>,
        children: usize,
        temporary: BTreeSet<PathBuf>,
    }

    impl Held {
        fn now(directory: &Path) -> Self {
            let entries = |path: &Path| -> Vec<PathBuf> {
                let entries = std::fs::read_dir(path).into_iter().flatten();
                entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
            };
            // The one by which they are listed is gone when it is looked at.
            let mut files: Vec<_> = entries(Path::new("/proc/self/fd"))
                .iter()
                .filter_map(|entry| std::fs::read_link(entry).ok())
                .map(|target| PathBuf::from(target.to_string_lossy().split(':').next().unwrap_or_default()))
                .collect();
            files.sort();
            let me = std::process::id().to_string();
            let children = entries(Path::new("/proc"))
                .iter()
                .filter_map(|entry| std::fs::read_to_string(entry.join("stat")).ok())
                .filter(|stat| {
                    let after_name = stat.rsplit(')').next().unwrap_or_default();
                    after_name.split_whitespace().nth(1) == Some(&me)
                })
                .count();
            Self {
                tasks: Handle::current().metrics().num_alive_tasks(),
                files,
                children,
                temporary: entries(directory).into_iter().collect(),
            }
        }

        async fn is_back(&self, directory: &Path, after: &str) {
            for _ in 0..600 {
                if Self::now(directory) == *self {
                    return;
                }
                sleep(Duration::from_millis(10)).await;
            }
            panic!("{after}:\n  before {self:?}\n  now    {:?}", Self::now(directory));
        }
    }
}
