//! Which hooks the real CLI calls, and what it makes of their answers and of their failures.

mod deferred;
mod life;
mod prompts;
mod session;
mod tools;

use std::sync::{Arc, Mutex, MutexGuard};

use outrigger::hooks::{HookKind, HookOutput};
use outrigger::{Outcome, Prompt, Session};

use super::flow::end;
use super::rig::Rig;

/// What a hook is to answer next, and the inputs that it got, as JSON.
struct Desk<E: HookKind> {
    answer: Mutex<HookOutput<E>>,
    asked: Mutex<Vec<String>>,
}

impl<E: HookKind> Desk<E> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            answer: Mutex::new(HookOutput::none()),
            asked: Mutex::default(),
        })
    }

    fn next(&self, answer: HookOutput<E>) {
        *self.answer.lock().unwrap() = answer;
    }

    fn notes(&self) -> MutexGuard<'_, Vec<String>> {
        self.asked.lock().unwrap()
    }

    fn take(&self, note: impl Into<String>) -> HookOutput<E> {
        self.notes().push(note.into());
        self.answer.lock().unwrap().clone()
    }

    fn noted(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes())
    }
}

/// The file that the model wants to write.
fn is_written(rig: &Rig) -> bool {
    let file = rig.sandbox().project().join("f.txt");
    let is = file.exists();
    let _ = std::fs::remove_file(file);
    is
}

/// Has the model write that file, and repeat what it was told.
const WRITE: &str = "%tool Bash {\"command\":\"echo hi > f.txt\",\"description\":\"a step\"}\n%say {{last}}";

/// Waits for something that the CLI does by itself.
async fn until(what: &str, condition: impl Fn() -> bool) {
    let end = tokio::time::Instant::now() + super::rig::PATIENCE;
    while !condition() {
        assert!(tokio::time::Instant::now() < end, "{what} did not happen");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Runs a slash command.
async fn command(session: &Session, name: &str, arguments: &str) -> Outcome {
    let mut turn = session.prompt(Prompt::command(name, arguments)).await.unwrap();
    end(&mut turn).await
}
