//! The lease on a session of this machine, by the same trial as those of the stores.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use outrigger_sessions::lease::{Lease, OnBusy};
use outrigger_sessions::{Error, Result, SessionId, Sessions};

use crate::owners::processes::{self, Desk, Record};

/// A session that is a file, to which is only written under the guard of the lease.
struct LocalDesk {
    sessions: Sessions,
    id: SessionId,
    file: PathBuf,
}

fn desk(config_dir: &str) -> LocalDesk {
    LocalDesk {
        sessions: Sessions::at(config_dir),
        id: SessionId::new("550e8400-e29b-41d4-a716-446655440000").unwrap(),
        file: PathBuf::from(config_dir).join("records"),
    }
}

fn holds(done: Result<()>) -> bool {
    match done {
        Ok(()) => true,
        Err(Error::Fenced(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

impl Desk for LocalDesk {
    type Lease = Lease;

    const LEASE: Duration = Duration::from_millis(60);

    fn take(&mut self, owner: &str) -> Option<(Lease, u64)> {
        let claim = self.sessions.claim(&self.id).owner(owner);
        match claim.on_busy(OnBusy::TakeOver).patience(Self::LEASE).take() {
            Ok(lease) => {
                let fence = lease.fence().0;
                Some((lease, fence))
            }
            Err(Error::Busy(_)) => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn renew(&mut self, lease: &Lease) -> bool {
        holds(lease.check())
    }

    fn add(&mut self, lease: &Lease, record: &Record) -> bool {
        holds(lease.guard(|| {
            if self.records().contains(record) {
                return Ok(());
            }
            let mut file = std::fs::File::options();
            let mut file = file.append(true).create(true).open(&self.file).unwrap();
            let Record { fence, number, uuid } = record;
            file.write_all(format!("{fence} {number} {uuid}\n").as_bytes())
                .unwrap();
            Ok(())
        }))
    }

    fn records(&mut self) -> Vec<Record> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let record = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            Record {
                fence: words[0].parse().unwrap(),
                number: words[1].parse().unwrap(),
                uuid: words[2].to_owned(),
            }
        };
        text.lines().map(record).collect()
    }
}

#[test]
fn owner_process() {
    processes::be(desk);
}

#[test]
fn owners_whose_processes_are_killed_or_stopped_do_everything_once() {
    let place = tempfile::tempdir().unwrap();
    processes::trial(module_path!(), place.path().to_str().unwrap(), desk);
}
