//! How far a script is, kept for all that play it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::{Script, judge};
use crate::flaw::Flaw;
use crate::running::Report;

/// How far a script is: which rules were used, by which prompts. Clones share it, and so do processes that keep it in one
/// [file](Self::in_file).
///
/// Whoever plays a script with it ([`Builder::script_in`](crate::peer::agent::Builder::script_in)) goes on where the others are. What
/// is expected in the end is judged once, by [`Script::judge`].
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<KeptProgress>);

#[derive(Debug)]
enum KeptProgress {
    Memory(Mutex<Vec<ProgressEntry>>),
    /// A line of JSON for each entry. Who adds one has the file locked, which the system undoes if the process is killed.
    File(PathBuf),
}

impl Default for KeptProgress {
    fn default() -> Self {
        Self::Memory(Mutex::default())
    }
}

/// Something that has happened.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ProgressEntry {
    /// A prompt has used up this rule once, for a subagent if there is one: each of those goes through the rules for itself.
    Used {
        rule: usize,
        prompt: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// The client did something wrong.
    Flaw { place: String, what: String },
    /// Somebody has got steps with these assertions, each named by its place.
    Due { asserts: Vec<String> },
    /// These are due once less: they were judged, or the steps of another rule have taken their place.
    Settled { asserts: Vec<String> },
}

/// Which rules were used, how often, and the position.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// The rules that main agents used, the oldest first, each with its prompt.
    main: Vec<(usize, String)>,
    /// The rules that subagents used, each with the subagent.
    below: Vec<(usize, String)>,
}

impl Uses {
    fn of(entries: Vec<ProgressEntry>) -> Self {
        let mut uses = Self::default();
        for entry in entries {
            match entry {
                ProgressEntry::Used {
                    rule,
                    prompt,
                    agent: None,
                } => uses.main.push((rule, prompt)),
                ProgressEntry::Used {
                    rule,
                    agent: Some(agent),
                    ..
                } => uses.below.push((rule, agent)),
                _ => {}
            }
        }
        uses
    }

    /// How often main agents have used this rule.
    pub(super) fn times(&self, rule: usize) -> u32 {
        count(&self.main, |(used, _)| *used == rule)
    }

    /// How often this rule was used: by main agents together, or by the subagent that used it most.
    pub(super) fn most(&self, rule: usize) -> u32 {
        let by_one = |agent: &str| count(&self.below, |(used, by)| *used == rule && by == agent);
        let below = self.below.iter().map(|(_, agent)| by_one(agent)).max();
        below.unwrap_or_default().max(self.times(rule))
    }

    /// The rules that main agents have used, the newest first, each with its prompt.
    pub(super) fn newest(&self) -> impl Iterator<Item = (usize, &str)> {
        self.main
            .iter()
            .rev()
            .map(|(rule, prompt)| (*rule, prompt.as_str()))
    }
}

fn count<T>(all: &[T], is_one: impl Fn(&T) -> bool) -> u32 {
    let count = all.iter().filter(|one| is_one(one)).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Progress {
    /// The beginning of a script, in memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps it in this file, for several processes. A file that does not exist yet is the beginning.
    pub fn in_file(path: impl Into<PathBuf>) -> Self {
        Self(Arc::new(KeptProgress::File(path.into())))
    }

    /// Notes a flaw of the client.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn note(&self, flaw: &Flaw) -> io::Result<()> {
        let Flaw { place, what } = flaw.clone();
        self.change(|_| ((), Some(ProgressEntry::Flaw { place, what })))
    }

    /// The flaws that were noted.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn flaws(&self) -> io::Result<Vec<Flaw>> {
        let flaws = self.change(|entries| (entries, None))?.into_iter();
        let flaws = flaws.filter_map(|entry| match entry {
            ProgressEntry::Flaw { place, what } => Some(Flaw::new(place, what)),
            _ => None,
        });
        Ok(flaws.collect())
    }

    /// Notes that somebody has got these assertions, which are judged once each.
    pub(super) fn due(&self, asserts: Vec<String>) -> io::Result<()> {
        match asserts.is_empty() {
            true => Ok(()),
            false => self.change(|_| ((), Some(ProgressEntry::Due { asserts }))),
        }
    }

    /// Notes that these assertions are due once less.
    pub(crate) fn settled(&self, asserts: Vec<String>) -> io::Result<()> {
        match asserts.is_empty() {
            true => Ok(()),
            false => self.change(|_| ((), Some(ProgressEntry::Settled { asserts }))),
        }
    }

    /// Where the assertions stand that were judged less often than they were due. How a process ended does not matter.
    pub(crate) fn unreached(&self) -> io::Result<Vec<String>> {
        let mut left: BTreeMap<String, usize> = BTreeMap::new();
        for entry in self.change(|entries| (entries, None))? {
            match entry {
                ProgressEntry::Due { asserts } => {
                    asserts
                        .into_iter()
                        .for_each(|place| *left.entry(place).or_default() += 1);
                }
                ProgressEntry::Settled { asserts } => {
                    for place in asserts {
                        left.entry(place)
                            .and_modify(|times| *times = times.saturating_sub(1));
                    }
                }
                _ => {}
            }
        }
        let left = left.into_iter().filter(|(_, times)| *times > 0);
        Ok(left.map(|(place, _)| place).collect())
    }

    /// What was used so far.
    pub(super) fn uses(&self) -> io::Result<Uses> {
        self.change(|entries| (Uses::of(entries), None))
    }

    /// Chooses a rule for a prompt, which is then used, while nobody else can choose.
    pub(super) fn choose(
        &self,
        prompt: &str,
        choose: impl FnOnce(&Uses) -> Option<usize>,
    ) -> io::Result<Option<usize>> {
        self.change(|entries| {
            let chosen = choose(&Uses::of(entries));
            let entry = chosen.map(|rule| ProgressEntry::Used {
                rule,
                prompt: prompt.to_owned(),
                agent: None,
            });
            (chosen, entry)
        })
    }

    /// Notes that a subagent has used a rule.
    pub(super) fn used_below(&self, rule: usize, prompt: &str, agent: &str) -> io::Result<()> {
        let entry = ProgressEntry::Used {
            rule,
            prompt: prompt.to_owned(),
            agent: Some(agent.to_owned()),
        };
        self.change(|_| ((), Some(entry)))
    }

    /// Reads all entries and adds one, while nobody else does.
    fn change<T>(
        &self,
        change: impl FnOnce(Vec<ProgressEntry>) -> (T, Option<ProgressEntry>),
    ) -> io::Result<T> {
        let path = match &*self.0 {
            KeptProgress::Memory(entries) => {
                let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
                let (value, entry) = change(entries.clone());
                entries.extend(entry);
                return Ok(value);
            }
            KeptProgress::File(path) => path,
        };
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let open = || File::options().read(true).append(true).create(true).open(path);
        let mut file = open().map_err(named)?;
        // Unlocked when the file is closed.
        file.lock().map_err(named)?;
        let mut text = String::new();
        file.rewind().map_err(named)?;
        file.read_to_string(&mut text).map_err(named)?;
        // Whoever was killed while it wrote has left the beginning of a line, which is no entry.
        let entries = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let (value, entry) = change(entries.collect());
        if let Some(entry) = entry {
            let line = serde_json::to_string(&entry).map_err(io::Error::from)?;
            let begin = if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            file.write_all(format!("{begin}{line}\n").as_bytes())
                .map_err(named)?;
        }
        Ok(value)
    }
}

impl Script {
    /// What the client did wrong, and what is missing, once all that play the script with this progress are done. A process that
    /// was killed, or whose end is not known, has a report without an [`exit`](Report::exit).
    pub fn judge(&self, progress: &Progress, reports: &[Report]) -> Vec<Flaw> {
        let read = progress
            .flaws()
            .and_then(|flaws| Ok((flaws, progress.uses()?, progress.unreached()?)));
        let (mut flaws, uses, unreached) = match read {
            Ok(read) => read,
            Err(error) => return vec![self.lost(&error)],
        };
        let played = reports.iter().map(|report| judge::Played {
            lines: &report.lines,
            ended: report.exit.is_some(),
        });
        flaws.extend(reports.iter().flat_map(|report| report.flaws.iter().cloned()));
        let used: Vec<u32> = (0..self.prompts.len()).map(|n| uses.most(n)).collect();
        flaws.extend(judge::end(self, &used, unreached, &played.collect::<Vec<_>>()));
        flaws
    }

    /// The rules that were not used as often as they must be, if the script [expects](super::Expect::every_rule_used) it.
    pub fn rules_left(&self, progress: &Progress) -> Vec<Flaw> {
        match progress.uses() {
            Ok(uses) => {
                let used: Vec<u32> = (0..self.prompts.len()).map(|n| uses.most(n)).collect();
                judge::unused(self, &self.expect, &used)
            }
            Err(error) => vec![self.lost(&error)],
        }
    }

    /// The flaw of a script whose progress is not known.
    pub(crate) fn lost(&self, error: &io::Error) -> Flaw {
        let what = format!("cannot keep how far the script is: {error}");
        Flaw::new(self.name(), what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first rule that was used less than three times.
    fn next(uses: &Uses) -> Option<usize> {
        (0..).find(|rule| uses.times(*rule) < 3)
    }

    #[test]
    fn several_that_choose_at_once_use_no_rule_too_often() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("progress");
        for progress in [Progress::new(), Progress::in_file(&path)] {
            std::thread::scope(|scope| {
                for _ in 0..6 {
                    // A file is opened anew by each, as by processes.
                    scope.spawn(|| {
                        for _ in 0..10 {
                            progress.choose("p", next).unwrap();
                        }
                    });
                }
            });
            let uses = progress.uses().unwrap();
            let times: Vec<u32> = (0..21).map(|rule| uses.times(rule)).collect();
            assert_eq!(times, [[3; 20].as_slice(), &[0]].concat());
        }
    }

    #[test]
    fn an_assertion_is_due_until_it_was_judged_as_often_as_it_was_handed_out() {
        let progress = Progress::new();
        let at = |place: &str| vec![place.to_owned()];
        progress.due([at("a"), at("b")].concat()).unwrap();
        progress.due(at("a")).unwrap();
        progress.settled(at("a")).unwrap();
        assert_eq!(progress.unreached().unwrap(), ["a", "b"]);
        progress.settled([at("b"), at("a"), at("a")].concat()).unwrap();
        assert_eq!(progress.unreached().unwrap(), [""; 0]);
        progress.due(at("a")).unwrap();
        assert_eq!(progress.unreached().unwrap(), ["a"]);
    }

    #[test]
    fn half_a_line_of_one_that_was_killed_does_no_harm() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("progress");
        let progress = Progress::in_file(&path);
        progress.choose("one", next).unwrap();
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"{\"used\":{\"rule\":1,\"pro").unwrap();
        progress.choose("two", next).unwrap();
        progress.note(&Flaw::new("here", "wrong")).unwrap();
        let uses = progress.uses().unwrap();
        assert_eq!(uses.newest().collect::<Vec<_>>(), [(0, "two"), (0, "one")]);
        assert_eq!(progress.flaws().unwrap(), [Flaw::new("here", "wrong")]);
    }
}
