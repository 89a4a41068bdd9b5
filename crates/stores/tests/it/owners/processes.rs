//! Owners of a session that are processes, as those of several machines: killed and stopped at random moments, while others take
//! over. Each of them works off numbers: it looks which was the last, and does the next ones, a record for each.
//!
//! A store's test opens the same [`Desk`] twice: for [`be`], in a test `owner_process` that does nothing by itself and is what the
//! processes run, and for [`trial`], which starts them and looks at what came of it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

const PLACE: &str = "OUTRIGGER_TEST_OWNER_PLACE";
const NAME: &str = "OUTRIGGER_TEST_OWNER_NAME";

/// How many processes want the session at once.
const OWNERS: u64 = 3;

/// How often one of them is killed or stopped, at least.
const ROUNDS: u64 = 20;

/// How many that slept too long have to find that they are not wanted any more.
const OVERTAKEN: usize = 3;

/// How long something that has to happen may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pseudo-random numbers, the same in each run.
#[derive(Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// What an owner has done: the number, and the lease under which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) fence: u64,
    pub(crate) number: u64,
    pub(crate) uuid: String,
}

/// Where a session is, and who may write to it: a store, or a directory of the CLI's.
pub(crate) trait Desk {
    type Lease;

    /// How long a lease lasts, or is waited for: a few times as long as a write takes.
    const LEASE: Duration;

    /// Takes the session, with the number of the lease; nothing while somebody else has it.
    fn take(&mut self, owner: &str) -> Option<(Self::Lease, u64)>;

    /// Makes the lease last; `false` if it is over.
    fn renew(&mut self, lease: &Self::Lease) -> bool;

    /// Adds a record, once, however often it is asked to; `false` if the lease is over.
    fn add(&mut self, lease: &Self::Lease, record: &Record) -> bool;

    /// All records in their order.
    fn records(&mut self) -> Vec<Record>;
}

/// What a process is that a [`trial`] started. Returns at once in any other.
pub(crate) fn be<D: Desk>(open: impl FnOnce(&str) -> D) {
    let (Ok(place), Ok(name)) = (std::env::var(PLACE), std::env::var(NAME)) else {
        return;
    };
    // It ends with the one that started it, however that ends.
    thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
    let mut desk = open(&place);
    let mut dice = Dice(name.bytes().fold(7919, |seed, byte| seed * 31 + u64::from(byte)));
    for life in 0.. {
        let owner = format!("{name}.{life}");
        let (lease, fence) = loop {
            match desk.take(&owner) {
                Some(taken) => break taken,
                None => thread::sleep(Duration::from_millis(1)),
            }
        };
        say(&format!("took {fence}"));
        let last = desk.records().last().map_or(0, |record| record.number);
        for number in last + 1.. {
            let uuid = format!("{owner}.{number}");
            let record = Record { fence, number, uuid };
            // Sent twice now and then, as after a lost answer.
            let is_added = (0..1 + dice.below(2)).all(|_| desk.add(&lease, &record));
            if !is_added {
                break;
            }
            say(&format!("added {fence} {number} {}", record.uuid));
            if dice.below(4) == 0 && !desk.renew(&lease) {
                break;
            }
            // What it does besides writing.
            thread::sleep(Duration::from_micros(dice.below(3000)));
        }
        say(&format!("over {fence}"));
    }
}

/// In one piece, so that a killed process leaves whole lines.
fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("@{what}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

#[derive(Debug)]
enum Said {
    Took(u64),
    Added(Record),
    Over(u64),
    Nothing,
}

fn understood(line: &str) -> Option<Said> {
    // The first lines are in the midst of what the test harness says.
    let (_, said) = line.split_once('@')?;
    let mut words = said.split(' ');
    let (what, fence) = (words.next()?, words.next()?.parse().ok()?);
    Some(match what {
        "took" => Said::Took(fence),
        "over" => Said::Over(fence),
        "added" => Said::Added(Record {
            fence,
            number: words.next()?.parse().ok()?,
            uuid: words.next()?.to_owned(),
        }),
        _ => return None,
    })
}

/// A process, which ends with this.
struct Owner {
    name: u64,
    process: Child,
}

impl Owner {
    fn start(name: u64, test: &str, place: &str, said: &Sender<(u64, Said)>) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(PLACE, place)
            .env(NAME, name.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (lines, said) = (BufReader::new(process.stdout.take().unwrap()), said.clone());
        thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                if let Some(told) = understood(&line) {
                    let _ = said.send((name, told));
                }
            }
            let _ = said.send((name, Said::Nothing));
        });
        Self { name, process }
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        // Not every system has a program of this name, but each shell does it.
        let kill = format!("kill {signal} {pid}");
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What is known from what the owners said.
struct Heard {
    said: Receiver<(u64, Said)>,
    /// Who took the session last, with which number.
    holder: (u64, u64),
    /// What was acknowledged, by number.
    added: BTreeMap<u64, Record>,
    /// How many there were of the holder's.
    of_holder: u64,
    /// The leases that their owners found to be over.
    over: Vec<u64>,
    /// The processes that ended.
    ended: Vec<u64>,
}

impl Heard {
    /// Listens until something is so, or nothing is heard for too long; tells which.
    fn until(&mut self, within: Duration, is_so: impl Fn(&Self) -> bool) -> bool {
        let end = Instant::now() + within;
        while !is_so(self) {
            let (name, said) = match self
                .said
                .recv_timeout(end.saturating_duration_since(Instant::now()))
            {
                Ok(said) => said,
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => panic!("nobody is there any more"),
            };
            match said {
                Said::Took(fence) => {
                    assert_ne!(fence, self.holder.1, "two leases have the same number");
                    if fence > self.holder.1 {
                        self.holder = (name, fence);
                        self.of_holder = 0;
                    }
                }
                Said::Added(record) => {
                    self.of_holder += u64::from(record.fence == self.holder.1);
                    let other = self.added.insert(record.number, record.clone());
                    assert!(
                        other.is_none(),
                        "a number was done twice: {other:?} and {record:?}"
                    );
                }
                Said::Over(fence) => self.over.push(fence),
                Said::Nothing => self.ended.push(name),
            }
        }
        true
    }

    fn has_to(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        assert!(self.until(PATIENCE, is_so), "it takes too long until {what}");
    }
}

/// Starts processes that compete for one empty session, and checks the result. `module` is the `module_path!()` of the store's test, which
/// has `owner_process`. Each number was done by one owner alone, what
/// was acknowledged is there once and in order, and who was overtaken got nothing written.
pub(crate) fn trial<D: Desk>(module: &str, place: &str, open: impl FnOnce(&str) -> D) {
    let (says, said) = channel();
    let mut names = 1..;
    // The harness names a test without its crate.
    let (_, module) = module.split_once("::").unwrap();
    let test = format!("{module}::owner_process");
    let mut start = || Owner::start(names.next().unwrap(), &test, place, &says);
    let mut owners: Vec<Owner> = (0..OWNERS).map(|_| start()).collect();
    let mut heard = Heard {
        said,
        holder: (0, 0),
        added: BTreeMap::new(),
        of_holder: 0,
        over: Vec::new(),
        ended: Vec::new(),
    };
    let mut dice = Dice(4711);
    let (mut killed, mut overtaken) = (0, 0);
    let begun = Instant::now();
    let mut rounds = 0;
    while rounds < ROUNDS || overtaken < OVERTAKEN {
        rounds += 1;
        assert!(
            begun.elapsed() < PATIENCE * 2,
            "too little happens: {killed} killed, {overtaken} overtaken"
        );
        let enough = dice.below(6);
        heard.has_to("somebody writes", |heard| heard.of_holder > enough);
        // At any moment of what it does.
        thread::sleep(Duration::from_micros(dice.below(3000)));
        heard.until(Duration::ZERO, |_| false);
        let (holder, fence) = heard.holder;
        let chosen = match dice.below(4) {
            0 => dice.below(OWNERS) as usize,
            _ => owners.iter().position(|owner| owner.name == holder).unwrap(),
        };
        if dice.below(2) == 0 {
            let mut dead = std::mem::replace(&mut owners[chosen], start());
            let has_ended = dead.process.try_wait().unwrap();
            assert!(has_ended.is_none(), "an owner failed: {has_ended:?}");
            dead.process.kill().unwrap();
            dead.process.wait().unwrap();
            heard.has_to("all is heard", |heard| heard.ended.contains(&dead.name));
            if heard.holder.0 == dead.name {
                // Somebody else has to take it first.
                heard.of_holder = 0;
            }
            killed += 1;
            continue;
        }
        let stopped = &owners[chosen];
        stopped.signal("-STOP");
        // If it was stopped in the midst of a write, the others may have to wait for it.
        let is_taken = heard.until(D::LEASE * 6, |heard| heard.holder.1 > fence);
        stopped.signal("-CONT");
        if is_taken && stopped.name == holder {
            heard.has_to("who was overtaken sees it", |heard| heard.over.contains(&fence));
            overtaken += 1;
        }
    }
    let last: Vec<u64> = owners.iter().map(|owner| owner.name).collect();
    drop(owners);
    heard.has_to("all have ended", |heard| {
        last.iter().all(|name| heard.ended.contains(name))
    });

    let records = open(place).records();
    assert!(
        records.len() >= ROUNDS as usize,
        "too little was written: {}",
        records.len()
    );
    for (record, number) in records.iter().zip(1..) {
        assert_eq!(
            record.number, number,
            "a number is missing or was done twice: {record:?}"
        );
    }
    for added in heard.added.values() {
        assert_eq!(
            records.get(added.number as usize - 1),
            Some(added),
            "what was acknowledged is not there"
        );
    }
    let fences: Vec<u64> = records.iter().map(|record| record.fence).collect();
    assert!(fences.is_sorted(), "owners wrote at the same time: {fences:?}");
    assert!(killed > 0, "nobody was killed");
}
