//! The agent, as editors start it.

use std::process::ExitCode;

fn main() -> ExitCode {
    keep_one_arena();
    // The agent mostly waits. Each further thread costs memory of its own, and the scheduler for many threads some more.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            // There is no other place for the message.
            let _ =
                std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("outrigger-acp: {error}\n"));
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(outrigger_acp::run(std::env::args_os().skip(1)));
    // A read of stdin may never end.
    runtime.shutdown_background();
    code
}

/// Has all threads allocate from one arena.
///
/// The allocator of glibc gives each thread an arena of its own, and what is freed there stays with it. The threads here read files and
/// pipes now and then, so that none of them waits for another.
fn keep_one_arena() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes two numbers, and no other thread runs yet.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
