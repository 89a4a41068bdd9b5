//! Runs a program in a network of its own, in which there is nothing but the loopback.
//!
//! On Linux that is a network namespace: for root as it is, for others inside of a user namespace in which they are who they
//! were. The program then takes this one's place, so that its exit code and the signals that it gets are its own.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

/// This program, to be run again. A build that replaces its file meanwhile does no harm on Linux.
pub(crate) fn this() -> Result<PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok("/proc/self/exe".into());
    }
    std::env::current_exe().context("cannot tell where this program is")
}

/// Whether this machine can do it; the error says why not.
pub(crate) fn probe() -> Result<()> {
    let output = Command::new(this()?)
        .args(["isolated", "--probe"])
        .output()
        .context("cannot run this program")?;
    if output.status.success() {
        return Ok(());
    }
    bail!(
        "{}",
        String::from_utf8_lossy(&output.stderr)
            .trim()
            .trim_start_matches("error: ")
    );
}

/// Runs the command; where the machine refuses isolation, says so and runs it all the same.
pub(crate) fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    let [program, rest @ ..] = &arguments[..] else {
        bail!("`isolated` needs a command to run");
    };
    let isolated = enter();
    if program == "--probe" {
        return isolated.map(|()| ExitCode::SUCCESS);
    }
    if let Err(reason) = isolated {
        eprintln!("warning: running without isolation from the network: {reason:#}");
    }
    take_over(Command::new(program).args(rest)).with_context(|| format!("cannot run {}", program.display()))
}

/// Becomes this program.
#[cfg(unix)]
fn take_over(command: &mut Command) -> std::io::Result<ExitCode> {
    Err(std::os::unix::process::CommandExt::exec(command))
}

#[cfg(not(unix))]
fn take_over(command: &mut Command) -> std::io::Result<ExitCode> {
    let code = command.status()?.code().unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

#[cfg(not(target_os = "linux"))]
fn enter() -> Result<()> {
    bail!("only Linux has network namespaces")
}

/// Puts this process into a network of its own.
#[cfg(target_os = "linux")]
fn enter() -> Result<()> {
    use rustix::thread::UnshareFlags;

    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    if unshare(UnshareFlags::NEWNET).is_err() {
        unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)
            .context("this machine allows no network namespace, nor one inside of a user namespace")?;
        // Who may not set groups may map its own.
        for (file, content) in [
            ("/proc/self/setgroups", "deny".to_owned()),
            ("/proc/self/uid_map", format!("{0} {0} 1", uid.as_raw())),
            ("/proc/self/gid_map", format!("{0} {0} 1", gid.as_raw())),
        ] {
            std::fs::write(file, content).with_context(|| format!("cannot write {file}"))?;
        }
    }
    loopback_up().context("cannot bring the loopback up")
}

#[cfg(target_os = "linux")]
fn unshare(flags: rustix::thread::UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: what is asked of the caller concerns file descriptor tables (`UnshareFlags::FILES`), which stay shared; and
    // this program has a single thread.
    #[expect(
        unsafe_code,
        reason = "there is no safe way into a namespace, and one line needs no crate more"
    )]
    unsafe {
        rustix::thread::unshare_unsafe(flags)
    }
}

/// Brings up the loopback of this network namespace, which has no other device, by asking the kernel over netlink.
#[cfg(target_os = "linux")]
fn loopback_up() -> Result<()> {
    use rustix::net::netlink::SocketAddrNetlink;
    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
    };

    const RTM_NEWLINK: u16 = 16;
    const NLMSG_ERROR: u16 = 2;
    /// A request, to be acknowledged.
    const REQUEST_ACK: u16 = 1 | 4;
    const IFF_UP: u32 = 1;
    /// The loopback is the first device in every network namespace.
    const LOOPBACK: i32 = 1;

    let mut request = Vec::with_capacity(32);
    // struct nlmsghdr
    request.extend(32_u32.to_ne_bytes());
    request.extend(RTM_NEWLINK.to_ne_bytes());
    request.extend(REQUEST_ACK.to_ne_bytes());
    request.extend(1_u32.to_ne_bytes());
    request.extend(0_u32.to_ne_bytes());
    // struct ifinfomsg
    request.extend([0; 4]);
    request.extend(LOOPBACK.to_ne_bytes());
    request.extend(IFF_UP.to_ne_bytes());
    request.extend(IFF_UP.to_ne_bytes());

    // Without a protocol it is that for routes and devices.
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(&socket, &request, SendFlags::empty(), &kernel)?;
    let mut answer = [0; 512];
    let (length, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    let answer = &answer[..length];
    let kind = answer
        .get(4..6)
        .and_then(|bytes| Some(u16::from_ne_bytes(bytes.try_into().ok()?)));
    let code = answer
        .get(16..20)
        .and_then(|bytes| Some(i32::from_ne_bytes(bytes.try_into().ok()?)));
    match (kind, code) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(code)) => Err(std::io::Error::from_raw_os_error(-code).into()),
        _ => bail!("the kernel answered with {length} bytes that are no acknowledgement"),
    }
}
