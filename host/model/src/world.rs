//! What really exists: one provider that knows all, the calls on their way to it, and what may still go wrong. Small and
//! sorted, so that equal worlds are equal bytes. Attempts are numbers in the driver's normal form.

use crate::hash::Mix;
use crate::scope::Edits;

/// Most resources, and most calls, at one time. A search that needs more says so and stops.
pub const MOST: usize = 12;

/// One resource that exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// Whose label it bears.
    pub attempt: u8,
    /// Its number within the attempt.
    pub number: u8,
    /// The session that runs on it, plus one; 0 for none.
    pub session: u8,
    /// The host listens to the session.
    pub heard: bool,
    /// Its join is kept by the driver, which does not know yet that it started.
    pub told: bool,
    /// It came when nobody waited for it.
    pub late: bool,
    /// For how long it need not be shown yet.
    pub young_ms: u16,
}

/// What a call asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    #[default]
    Create,
    Settle,
    Lookup,
    Start,
    Cancel,
    Destroy,
}

impl Ask {
    pub fn label(self) -> &'static str {
        match self {
            Ask::Create => "create-lease",
            Ask::Settle => "look for the lease",
            Ask::Lookup => "lookup-endpoint",
            Ask::Start => "start-bootstrap",
            Ask::Cancel => "cancel-bootstrap",
            Ask::Destroy => "destroy-lease",
        }
    }
}

/// What the provider answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reply {
    /// Nothing yet: the call has not taken effect.
    #[default]
    None,
    Leased,
    LeasedAgain,
    Absent,
    Found,
    Started,
    StartedAgain,
    Cancelled,
    Destroyed,
    /// There is no such resource.
    Gone,
}

/// Who waits for a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waits {
    /// The driver.
    #[default]
    Driver,
    /// Its deadline has passed: its reply will come, and nobody wants it.
    Late,
    /// Nobody: no reply will come.
    Nobody,
}

/// A call on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    pub attempt: u8,
    pub ask: Ask,
    /// The resource it is about, by its number within the attempt.
    pub number: u8,
    /// The session it is about.
    pub session: u8,
    pub reply: Reply,
    pub waits: Waits,
    /// The driver remembers it as ambiguous.
    pub doubted: bool,
    /// For how long it may still take effect (a create, windowed provider).
    pub left_ms: u16,
}

impl Call {
    /// It is about a resource that is known by now.
    fn names_resource(&self) -> bool {
        match self.ask {
            Ask::Create | Ask::Settle => matches!(self.reply, Reply::Leased | Reply::LeasedAgain),
            Ask::Lookup | Ask::Start | Ask::Cancel | Ask::Destroy => true,
        }
    }

    fn names_session(&self) -> bool {
        match self.ask {
            Ask::Start => matches!(self.reply, Reply::Started | Reply::StartedAgain),
            ask => ask == Ask::Cancel,
        }
    }
}

/// A few of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Few<T> {
    items: [T; MOST],
    len: u8,
    /// Something did not fit.
    pub overflow: bool,
}

impl<T: Copy + Default + Ord> Default for Few<T> {
    fn default() -> Self {
        Few { items: [T::default(); MOST], len: 0, overflow: false }
    }
}

impl<T: Copy + Default + Ord> Few<T> {
    pub fn push(&mut self, item: T) {
        match self.items.get_mut(usize::from(self.len)) {
            Some(place) => {
                *place = item;
                self.len += 1;
            }
            None => self.overflow = true,
        }
    }

    pub fn remove(&mut self, at: usize) {
        let len = usize::from(self.len);
        if at < len {
            self.items.copy_within(at + 1..len, at);
            self.len -= 1;
            self.items[len - 1] = T::default();
        }
    }

    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        for at in (0..usize::from(self.len)).rev() {
            if !keep(&self.items[at]) {
                self.remove(at);
            }
        }
    }

    pub fn as_slice(&self) -> &[T] {
        &self.items[..usize::from(self.len)]
    }

    pub fn as_mut(&mut self) -> &mut [T] {
        &mut self.items[..usize::from(self.len)]
    }

    pub fn sort(&mut self) {
        self.as_mut().sort_unstable();
    }
}

/// The world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct World {
    pub resources: Few<Resource>,
    pub calls: Few<Call>,
    pub edits: Edits,
    pub crashes_left: u8,
    pub faults_left: u8,
}

impl World {
    /// Where an attempt's resource is.
    pub fn find(&self, attempt: u8) -> Option<usize> {
        self.resources.as_slice().iter().position(|held| held.attempt == attempt)
    }

    /// Where a resource is.
    pub fn leased(&self, attempt: u8, number: u8) -> Option<usize> {
        self.resources.as_slice().iter().position(|held| held.attempt == attempt && held.number == number)
    }

    /// The numbers of resources of an attempt that something in the world refers to, a bit each.
    pub fn numbers(&self, attempt: u8) -> u16 {
        let held = self.resources.as_slice().iter().filter(|held| held.attempt == attempt).map(|held| held.number);
        let calls = self.calls.as_slice().iter().filter(|call| call.attempt == attempt && call.names_resource());
        held.chain(calls.map(|call| call.number)).fold(0, |mask, number| mask | 1 << (number & 15))
    }

    /// The sessions of a resource that something in the world refers to, a bit each.
    pub fn sessions(&self, attempt: u8, number: u8) -> u16 {
        let held = self.resources.as_slice().iter().filter(|held| held.attempt == attempt && held.number == number);
        let held = held.filter(|held| held.session > 0).map(|held| held.session - 1);
        let calls = self.calls.as_slice().iter().filter(|call| call.attempt == attempt && call.number == number);
        let about = calls.filter(|call| call.names_session()).map(|call| call.session);
        held.chain(about).fold(0, |mask, session| mask | 1 << (session & 15))
    }

    /// The call of an attempt that the driver waits for.
    pub fn awaited(&self, attempt: u8) -> Option<usize> {
        self.calls.as_slice().iter().position(|call| call.attempt == attempt && call.waits == Waits::Driver)
    }

    /// The attempts that something refers to, a bit each.
    pub fn attempts(&self) -> u32 {
        let held = self.resources.as_slice().iter().map(|held| held.attempt);
        held.chain(self.calls.as_slice().iter().map(|call| call.attempt)).fold(0, |mask, at| mask | 1 << (at & 31))
    }

    /// What cannot matter any more is forgotten: calls that nobody waits for and that find nothing to change, and ages
    /// that nothing is compared with. The driver waits for the start of a bootstrap of the attempts in `starting`, a bit each.
    pub fn forget(&mut self, starting: u32) {
        let world = *self;
        self.calls.retain(|call| {
            let held = || world.leased(call.attempt, call.number).map(|at| world.resources.as_slice()[at]);
            call.waits != Waits::Nobody
                || match call.ask {
                    Ask::Create => true,
                    Ask::Settle | Ask::Lookup => false,
                    Ask::Start => held().is_some_and(|held| held.session == 0),
                    Ask::Cancel => held().is_some_and(|held| held.session == call.session + 1),
                    Ask::Destroy => held().is_some(),
                }
        });
        // A join may be reported again, unless the driver would only keep it once more.
        for held in self.resources.as_mut().iter_mut() {
            held.told &= starting >> (held.attempt & 31) & 1 == 1;
        }
        if self.faults_left == 0 {
            self.resources.as_mut().iter_mut().for_each(|held| held.young_ms = 0);
            if self.crashes_left == 0 {
                let awaited = self.calls.as_mut().iter_mut().filter(|call| call.waits == Waits::Driver);
                awaited.for_each(|call| call.left_ms = 0);
            }
        }
    }

    /// Attempts have other numbers now.
    pub fn renumber(&mut self, to: &[u8]) {
        let new = |attempt: u8| to.get(usize::from(attempt)).copied().unwrap_or(u8::MAX);
        self.resources.as_mut().iter_mut().for_each(|held| held.attempt = new(held.attempt));
        self.calls.as_mut().iter_mut().for_each(|call| call.attempt = new(call.attempt));
    }

    pub fn hash(&self, mix: &mut Mix) {
        let edits = u64::from(self.edits.code());
        let (held, calls) = (self.resources.as_slice(), self.calls.as_slice());
        let counts = (held.len() as u64) << 8 | (calls.len() as u64) << 16;
        mix.word(edits | counts | u64::from(self.crashes_left) << 24 | u64::from(self.faults_left) << 32);
        for held in held {
            let flags = u64::from(held.heard) | u64::from(held.late) << 1 | u64::from(held.told) << 2;
            let names = u64::from(held.attempt) | u64::from(held.number) << 8 | u64::from(held.session) << 16;
            mix.word(names | flags << 24 | u64::from(held.young_ms) << 32);
        }
        for call in calls {
            let about = u64::from(call.attempt) | u64::from(call.number) << 8 | u64::from(call.session) << 16;
            let how = call.ask as u64 | (call.reply as u64) << 4 | (call.waits as u64) << 8;
            mix.word(about | how << 24 | u64::from(call.doubted) << 39 | u64::from(call.left_ms) << 40);
        }
    }
}
