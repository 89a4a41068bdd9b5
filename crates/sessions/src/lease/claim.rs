//! Claiming a session, and having it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::cli::Driver;
use super::disk::{ChangeLock, ClaimState, Disk, HolderLock, STEP};
use super::{Busy, Fence, OnBusy, Owner, driven_by_cli};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::place::Sessions;
use crate::write::ForkOptions;

/// How long a holder has to release a session on request, by default.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the system may take to end a process that was killed.
const DEATH: Duration = Duration::from_secs(10);

/// A claim that is about to be made: [`take`](Self::take) makes it.
#[derive(Debug, Clone)]
#[must_use = "nothing is claimed until it is taken"]
pub struct LeaseClaim<'s> {
    sessions: &'s Sessions,
    id: SessionId,
    owner: String,
    on_busy: OnBusy,
    patience: Duration,
    own_cli: Option<u32>,
    stop: Arc<AtomicBool>,
}

/// The right to drive a session, until it is released or dropped, the process ends, or another process takes it over.
#[derive(Debug)]
#[must_use = "a lease that is dropped is released"]
pub struct Lease {
    disk: Disk,
    id: SessionId,
    fence: Fence,
    taken_from: Option<Owner>,
    forked_from: Option<SessionId>,
    /// The lock of the holder; `None` once the lease is released.
    held: Option<HolderLock>,
}

impl Sessions {
    /// Begins a claim on a session, so that no other process drives it. The session need not exist yet.
    pub fn claim(&self, id: &SessionId) -> LeaseClaim<'_> {
        LeaseClaim {
            sessions: self,
            id: id.clone(),
            owner: env!("CARGO_PKG_NAME").to_owned(),
            on_busy: OnBusy::default(),
            patience: PATIENCE,
            own_cli: None,
            stop: Arc::default(),
        }
    }

    /// The other process that drives a session: one with a lease that is alive, or a CLI that lists itself ([`driven_by_cli`]). Leases
    /// of this process do not count.
    ///
    /// The state may have changed by the time this returns; to drive a session, [`claim`](Self::claim) it.
    ///
    /// # Errors
    /// When the files of the lease cannot be read.
    pub fn driven_by(&self, id: &SessionId) -> Result<Option<Busy>> {
        let disk = Disk::of(self.config_dir(), id);
        if let Some(state) = disk.state()?.filter(|state| !state.released)
            && !state.owner.is_here()
            && disk.is_held(state.fence)?
        {
            return Ok(Some(Busy {
                id: id.clone(),
                owner: state.owner,
                fence: Some(state.fence),
            }));
        }
        Ok(driven_by_cli(self.config_dir(), id))
    }
}

impl LeaseClaim<'_> {
    /// Sets the owner's name, which others see when they find the session busy. The default is the name of this library.
    pub fn owner(mut self, name: impl Into<String>) -> Self {
        self.owner = name.into();
        self
    }

    /// Sets what happens if another process has the session. By default the claim fails.
    pub fn on_busy(mut self, on_busy: OnBusy) -> Self {
        self.on_busy = on_busy;
        self
    }

    /// With [`OnBusy::TakeOver`], sets how long a holder has to release the session before it is fenced. Five seconds by
    /// default; with zero there is no request.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets the process id of the claimer's own CLI: it does not count as another process that drives the session, and neither do the
    /// processes of its group. After `/clear` the CLI lists itself with the new session before anyone else knows the id.
    pub fn own_cli(mut self, pid: u32) -> Self {
        self.own_cli = Some(pid);
        self
    }

    /// Sets what another thread may turn on while [`take`](Self::take) waits: then the session is not taken over any more.
    pub fn stop(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = stop;
        self
    }

    /// Acquires the lease. The lease of a holder that died is taken over at once, whatever `on_busy` is set to.
    ///
    /// To take a session over, this blocks for the patience until the holder is fenced, and once more for the CLI that the
    /// holder should then end. Otherwise it waits only for changes of others, which are short.
    ///
    /// A holder that hangs, or was stopped, ends nothing. Then its CLI is killed here: by SIGTERM, and by SIGKILL after the patience.
    /// This is done only if it is certain whose CLI it is, which needs Linux and a CLI that is the holder's own child process on
    /// this machine. Otherwise the holder is not fenced either: it has twice the patience to react, and keeps the
    /// session if it does not.
    ///
    /// # Errors
    /// [`Error::Busy`] if another process has the session and it is not to be forked or taken over; also if a CLI drives it that is not
    /// killed, as above, since a CLI can't be fenced. The errors of [`fork`](Sessions::fork) if it is to be forked. [`Error::Stopped`]
    /// after a [`stop`](Self::stop); then the request to the holder is withdrawn. When the files of the lease cannot be read or written.
    pub fn take(self) -> Result<Lease> {
        let busy = match self.attempt(false)? {
            Ok(lease) => return Ok(lease),
            Err(busy) => busy,
        };
        match self.on_busy {
            OnBusy::Fail => Err(Error::Busy(Box::new(busy))),
            OnBusy::Fork => {
                let fork = self.sessions.fork(&self.id, &ForkOptions::new())?;
                let mut lease = LeaseClaim {
                    id: fork,
                    on_busy: OnBusy::Fail,
                    ..self.clone()
                }
                .take()?;
                lease.forked_from = Some(self.id);
                Ok(lease)
            }
            OnBusy::TakeOver => self.take_over(),
        }
    }

    /// Requests the session, waits, and then takes it over.
    fn take_over(&self) -> Result<Lease> {
        let me = self.me();
        // A moment that the clock cannot count never comes.
        let fences = Instant::now().checked_add(self.patience);
        let gives_up = fences.and_then(|until| until.checked_add(self.patience));
        let is_over = |until: Option<Instant>| until.is_some_and(|until| Instant::now() >= until);
        if self.patience > Duration::ZERO {
            self.change_request(|wanted_by| *wanted_by = Some(me.clone()))?;
        }
        let error = loop {
            if self.is_stopped() {
                break Error::Stopped;
            }
            let is_late = is_over(gives_up);
            match self.attempt(is_over(fences))? {
                Ok(lease) => return self.after_the_cli(lease),
                Err(busy) if is_late => break Error::Busy(Box::new(busy)),
                Err(_) => thread::sleep(STEP),
            }
        };
        // A holder that answers later would let the session go to nobody.
        self.change_request(|wanted_by| *wanted_by = wanted_by.take().filter(|other| *other != me))?;
        Err(error)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Changes the request to the holder, if there is a holder.
    fn change_request(&self, change: impl FnOnce(&mut Option<Owner>)) -> Result<()> {
        let disk = self.disk();
        let turn = disk.turn()?;
        if let Some(mut state) = disk.state()?.filter(|state| !state.released) {
            change(&mut state.wanted_by);
            disk.set_state(&turn, &state)?;
        }
        Ok(())
    }

    /// Waits for the CLI of a holder that was fenced off, since nothing but its end keeps it from writing, and ends it if the holder
    /// does not.
    fn after_the_cli(&self, lease: Lease) -> Result<Lease> {
        let mut driver = self.driver_after(self.patience);
        for (by_force, patience) in [(false, self.patience), (true, DEATH)] {
            let Some(running) = &driver else {
                return Ok(lease);
            };
            if !lease
                .taken_from
                .as_ref()
                .is_some_and(|holder| running.is_of(holder))
            {
                break;
            }
            if self.is_stopped() {
                return Err(Error::Stopped);
            }
            running.end(by_force);
            driver = self.driver_after(patience);
        }
        match driver {
            None => Ok(lease),
            Some(driver) => Err(Error::Busy(Box::new(driver.busy(&self.id)))),
        }
    }

    /// The CLI that drives the session still when the patience is over.
    fn driver_after(&self, patience: Duration) -> Option<Driver> {
        let until = Instant::now().checked_add(patience);
        loop {
            let driver = self.driver()?;
            if self.is_stopped() || until.is_some_and(|until| Instant::now() >= until) {
                return Some(driver);
            }
            thread::sleep(STEP);
        }
    }

    fn driver(&self) -> Option<Driver> {
        Driver::of(self.sessions.config_dir(), &self.id, self.own_cli)
    }

    /// Takes the lease if nobody has it, or by force.
    fn attempt(&self, by_force: bool) -> Result<Result<Lease, Busy>> {
        let disk = self.disk();
        let turn = disk.turn()?;
        let state = disk.state()?;
        let holder = state.filter(|state| !state.released);
        let lives = match &holder {
            Some(state) => disk.is_held(state.fence)?,
            None => false,
        };
        let driver = self.driver();
        if let Some(state) = holder.as_ref().filter(|_| lives) {
            // A fenced holder should kill its CLI. If the holder hangs, another process has to be able to.
            let can_be_ended = driver.as_ref().is_none_or(|driver| driver.is_of(&state.owner));
            if !by_force || !can_be_ended {
                return Ok(Err(Busy {
                    id: self.id.clone(),
                    owner: state.owner.clone(),
                    fence: Some(state.fence),
                }));
            }
        } else if let Some(driver) = driver {
            // Also one whose holder died.
            return Ok(Err(driver.busy(&self.id)));
        }
        self.make(&disk, &turn, holder).map(Ok)
    }

    fn make(&self, disk: &Disk, turn: &ChangeLock, before: Option<ClaimState>) -> Result<Lease> {
        let last = disk.state()?.map(|state| state.fence);
        let fence = last.unwrap_or(Fence(0)).next();
        let held = disk.hold(turn, fence)?;
        let state = ClaimState {
            fence,
            owner: self.me(),
            released: false,
            wanted_by: None,
        };
        disk.set_state(turn, &state)?;
        if let Some(last) = last {
            disk.forget(turn, last)?;
        }
        Ok(Lease {
            disk: disk.clone(),
            id: self.id.clone(),
            fence,
            taken_from: before.map(|state| state.owner),
            forked_from: None,
            held: Some(held),
        })
    }

    fn disk(&self) -> Disk {
        Disk::of(self.sessions.config_dir(), &self.id)
    }

    fn me(&self) -> Owner {
        Owner::here(&self.owner)
    }
}

impl Lease {
    /// The session: the fork, if the requested session was busy and forked.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The number of the claim.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// Who had the session before and did not let it go: a process that died with it, or one that it was taken from.
    pub fn taken_from(&self) -> Option<&Owner> {
        self.taken_from.as_ref()
    }

    /// The requested session, if it was busy and the lease is on a fork of it.
    pub fn forked_from(&self) -> Option<&SessionId> {
        self.forked_from.as_ref()
    }

    /// Checks that the lease is still valid. Call it before each action on the session; for changes of
    /// files, [`guard`](Self::guard) leaves no gap between the check and the change.
    ///
    /// # Errors
    /// [`Error::Fenced`] when another process has taken the session over; when the file of the lease cannot be read.
    pub fn check(&self) -> Result<()> {
        self.judge(self.disk.state()?)
    }

    /// Runs `act` if the lease is still valid, and lets no other process take it over meanwhile. `act` should be short: others wait for it.
    ///
    /// # Errors
    /// Those of [`check`](Self::check), and `act` is not called; else those of `act`.
    pub fn guard<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let _turn = self.disk.turn()?;
        self.check()?;
        act()
    }

    /// The owner that requests the session, if there is one: a holder that releases it in time need not be fenced.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn wanted_by(&self) -> Result<Option<Owner>> {
        let state = self.disk.state()?;
        let wanted_by = state.as_ref().and_then(|state| state.wanted_by.clone());
        self.judge(state)?;
        Ok(wanted_by)
    }

    /// Releases the session, as dropping the lease does, but reports errors. A lease that was taken over is released already.
    ///
    /// # Errors
    /// When the files of the lease cannot be written. Others then notice that the holder is gone once this process is.
    pub fn release(mut self) -> Result<()> {
        self.let_go()
    }

    fn judge(&self, state: Option<ClaimState>) -> Result<()> {
        match state {
            Some(state) if state.fence == self.fence && !state.released => Ok(()),
            Some(state) => Err(Error::Fenced(Box::new(Busy {
                id: self.id.clone(),
                owner: state.owner,
                fence: Some(state.fence),
            }))),
            None => Err(Error::invalid(
                "the lease",
                format!(
                    "the lease file of session {} is gone; claim the session again",
                    self.id
                ),
            )),
        }
    }

    fn let_go(&mut self) -> Result<()> {
        let Some(held) = self.held.take() else {
            return Ok(());
        };
        let turn = self.disk.turn()?;
        if let Some(mut state) = self.disk.state()?.filter(|state| state.fence == self.fence) {
            state.released = true;
            self.disk.set_state(&turn, &state)?;
        }
        drop(held);
        self.disk.forget(&turn, self.fence)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // If this fails, the lock is free all the same, and the next claim notices that its holder is gone.
        let _ = self.let_go();
    }
}

#[cfg(test)]
mod tests;
