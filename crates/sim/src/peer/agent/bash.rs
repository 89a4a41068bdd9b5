//! Command lines: as a shell runs them, and as they are played on files in memory.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tempfile::NamedTempFile;
use tokio::process::Command;

use super::context::Context;
use super::output::Output;
use super::{disk, environment, paths, shell};

/// Runs a command line in the working directory and gives its exit code. Dropping it kills the shell and what the shell runs.
pub(super) async fn real_command(ctx: &Context, command: &str, output: &Output, by_main: bool) -> i32 {
    // Without the file the shell stays where it is.
    let directory = NamedTempFile::new().ok();
    let noted = directory
        .as_ref()
        .map_or(Path::new("/dev/null"), NamedTempFile::path);
    let quoted = noted.to_string_lossy().replace('\'', r"'\''");
    let script = format!("eval \"$1\" && pwd -P >| '{quoted}'");
    let run = async || {
        let (file, _open) = output.open()?;
        let mut shell = Command::new("bash");
        shell
            .args(["-c", &script, "bash", command])
            .current_dir(ctx.cwd());
        environment::of_command(ctx, &mut shell);
        #[cfg(unix)]
        shell.process_group(0);
        let mut shell = shell
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .kill_on_drop(true)
            .spawn()?;
        let group = ShellGroup(shell.id());
        let ended = shell.wait().await;
        group.leave();
        ended
    };
    let ended = run().await;
    // A command in the background leaves the shell where it is.
    let is_task = output.is_of_task();
    if by_main && !is_task {
        let to = std::fs::read_to_string(noted).unwrap_or_default();
        follow(ctx, output, PathBuf::from(to.trim_end_matches('\n')));
    }
    match ended {
        // A shell that was killed by a signal has no code.
        Ok(status) => status.code().unwrap_or(if is_task { 1 } else { 137 }),
        Err(error) => {
            output.push(ctx, format!("bash: {error}").as_bytes());
            126
        }
    }
}

/// The processes of a shell. Dropping it kills all of them.
struct ShellGroup(Option<u32>);

impl ShellGroup {
    /// The shell has ended. What it has left running goes on.
    fn leave(mut self) {
        self.0 = None;
    }
}

#[cfg(unix)]
impl Drop for ShellGroup {
    fn drop(&mut self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        let group = self.0.and_then(|id| Pid::from_raw(id.cast_signed()));
        // Nothing is left of one that has just ended.
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
    }
}

/// Follows the shell of the main agent to another directory, unless the shell has left those that it may use.
fn follow(ctx: &Context, output: &Output, to: PathBuf) {
    let here = ctx.cwd();
    let stays = to.as_os_str().is_empty() || to == here;
    if stays || here.canonicalize().is_ok_and(|here| here == to) {
        return;
    }
    let inside = paths::Area::new(ctx, &ctx.state()).includes(&to);
    if inside {
        ctx.shell_goes_to(to);
    } else {
        let project = ctx.project();
        output.set_reset(&project);
        ctx.shell_goes_to(project);
    }
}

/// Plays a command line on files in memory and tokio's clock, and gives its exit code.
pub(super) async fn pretended_command(ctx: &Context, command: &str, output: &Output) -> i32 {
    let line = shell::parse(command, Path::new(&ctx.config.home));
    for command in line
        .commands
        .into_iter()
        .filter(|command| !command.words.is_empty())
    {
        let (text, code) = pretended(ctx, &command.words).await;
        match command.writes.last() {
            Some(file) => {
                let path = disk::absolute(ctx, file);
                ctx.state().files.insert(path, text);
            }
            None => output.push(ctx, text.as_bytes()),
        }
        if code != 0 || command.name() == "exit" {
            return code;
        }
    }
    0
}

/// Plays one command: what it puts out, and its exit code.
async fn pretended(ctx: &Context, words: &[String]) -> (String, i32) {
    let arguments = &words[1..];
    let mut output = String::new();
    match words[0].as_str() {
        "echo" => output = format!("{}\n", arguments.join(" ")),
        "sleep" => {
            let seconds = arguments
                .first()
                .and_then(|argument| argument.parse::<f64>().ok());
            let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            ctx.pause(duration.unwrap_or_default()).await;
        }
        "touch" => {
            for file in arguments {
                let path = disk::absolute(ctx, file);
                ctx.state().files.entry(path).or_default();
            }
        }
        "rm" => {
            for file in arguments {
                let path = disk::absolute(ctx, file);
                ctx.state().files.remove(&path);
            }
        }
        "cat" => {
            for file in arguments {
                let path = disk::absolute(ctx, file);
                let content = ctx.state().files.get(&path).cloned();
                match content {
                    Some(content) => output.push_str(&content),
                    None => {
                        output.push_str(&format!("cat: {file}: No such file or directory\n"));
                        return (output, 1);
                    }
                }
            }
        }
        "true" => {}
        "false" => return (output, 1),
        "exit" => {
            let code = arguments.first().and_then(|code| code.parse().ok());
            return (output, code.unwrap_or(0));
        }
        unknown => return (format!("bash: {unknown}: command not found\n"), 127),
    }
    (output, 0)
}
