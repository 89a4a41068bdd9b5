//! `outrigger acp --host`.

use std::ffi::OsString;

use outrigger_host_client::HostClient;

use super::HostArgs;
use crate::agent::usage;
use crate::exit::Failure;

/// The host that the arguments of `outrigger acp` name, and the other arguments; `None` if they name no host. OUTRIGGER_HOST does not count: an agent in
/// an editor would have its sessions elsewhere without anybody having said so there.
///
/// # Errors
/// When an option has no value, or there is no token for the host.
pub(crate) fn agent_on_host(arguments: &[OsString]) -> Result<Option<(HostClient, Vec<OsString>)>, Failure> {
    let (host, rest) = split(arguments)?;
    match host.host {
        None if host.token_file.is_some() || host.trust.ca.is_some() => {
            Err(usage("--token-file and --ca are for --host URL".to_owned()))
        }
        None => Ok(None),
        Some(_) => Ok(Some((host.client()?, rest))),
    }
}

fn split(arguments: &[OsString]) -> Result<(HostArgs, Vec<OsString>), Failure> {
    let mut host = HostArgs::default();
    let mut rest = Vec::new();
    let mut left = arguments.iter();
    while let Some(argument) = left.next() {
        let text = argument.to_str().unwrap_or_default();
        // What follows is for the CLI.
        if text == "--cli" {
            rest.push(argument.clone());
            rest.extend(left.cloned());
            break;
        }
        let (name, joined) = match text.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (text, None),
        };
        if !["--host", "--token-file", "--ca"].contains(&name) {
            rest.push(argument.clone());
            continue;
        }
        let value = joined.or_else(|| left.next().cloned());
        let value = value.ok_or_else(|| usage(format!("{name} needs a value")))?;
        match name {
            "--host" => {
                let url = value.into_string();
                host.host = Some(url.map_err(|_| usage("--host is not text".to_owned()))?);
            }
            "--token-file" => host.token_file = Some(value.into()),
            _ => host.trust.ca = Some(value.into()),
        }
    }
    if host.host.is_some() && host.trust.ca.is_none() {
        host.trust.ca = std::env::var_os("OUTRIGGER_HOST_CA").map(Into::into);
    }
    Ok((host, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_taken_out_and_the_rest_is_the_agent_s() {
        let of = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            split(&words).map(|(host, rest)| {
                let rest: Vec<String> = rest.into_iter().map(|word| word.into_string().unwrap()).collect();
                (
                    host.host,
                    host.token_file.map(|path| path.display().to_string()),
                    rest,
                )
            })
        };
        let (host, file, rest) = of(&["--log", "a", "--host", "https://x", "--token-file=t"]).unwrap();
        assert_eq!((host.as_deref(), file.as_deref()), (Some("https://x"), Some("t")));
        assert_eq!(rest, ["--log", "a"]);
        let (host, _, rest) = of(&["--cli", "--host", "x"]).unwrap();
        assert_eq!(
            (host, rest),
            (None, ["--cli", "--host", "x"].map(str::to_owned).to_vec())
        );
        assert!(of(&["--host"]).is_err());
    }
}
