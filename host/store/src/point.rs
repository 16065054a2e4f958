//! The boundaries at which a crash can matter, by name, and what can be hung there in tests.

use std::fmt;

use crate::error::StoreError;

/// A boundary of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    /// Before lines, a command or a value are taken.
    AppendBefore,
    /// After that. They are not durable.
    AppendAfter,
    /// Before anything of a batch is written.
    SyncBefore,
    /// All is written, nothing committed. Only a store with transactions comes here.
    SyncWithin,
    /// The batch is durable, and nobody was told.
    SyncAfter,
    /// Before a snapshot is written.
    SnapshotBefore,
    /// It is written and not committed. Only a store with transactions comes here.
    SnapshotWithin,
    /// The snapshot is durable, and nobody was told.
    SnapshotAfter,
    /// Before records are dropped.
    CompactBefore,
    /// They are dropped, and that is not committed. Only a store with transactions comes here.
    CompactWithin,
    /// They are durably dropped, and nobody was told.
    CompactAfter,
}

impl Point {
    /// All of them.
    pub const ALL: [Point; 11] = [
        Point::AppendBefore,
        Point::AppendAfter,
        Point::SyncBefore,
        Point::SyncWithin,
        Point::SyncAfter,
        Point::SnapshotBefore,
        Point::SnapshotWithin,
        Point::SnapshotAfter,
        Point::CompactBefore,
        Point::CompactWithin,
        Point::CompactAfter,
    ];

    /// Its name.
    pub fn label(self) -> &'static str {
        match self {
            Point::AppendBefore => "append-before",
            Point::AppendAfter => "append-after",
            Point::SyncBefore => "sync-before",
            Point::SyncWithin => "sync-within",
            Point::SyncAfter => "sync-after",
            Point::SnapshotBefore => "snapshot-before",
            Point::SnapshotWithin => "snapshot-within",
            Point::SnapshotAfter => "snapshot-after",
            Point::CompactBefore => "compact-before",
            Point::CompactWithin => "compact-within",
            Point::CompactAfter => "compact-after",
        }
    }

    /// The point of that name.
    pub fn named(label: &str) -> Option<Point> {
        Point::ALL.into_iter().find(|point| point.label() == label)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// What is asked at every boundary. It may kill the process, count, or make the step fail.
pub trait FailPoint: Send {
    /// The boundary is reached. An error fails the step there: what was before it has happened, what is after it has not.
    ///
    /// # Errors
    ///
    /// As asked for.
    fn reached(&mut self, at: Point) -> Result<(), StoreError>;
}

/// A place where one may hang.
#[derive(Default)]
pub(crate) struct Hook(pub Option<Box<dyn FailPoint>>);

impl Hook {
    /// What hangs there from the start: nothing, unless this was built for tests and the environment asks for it.
    pub fn at_opening() -> Self {
        #[cfg(feature = "fail-points")]
        if let Some(point) = KillAt::from_environment() {
            return Hook(Some(Box::new(point)));
        }
        Hook::default()
    }

    pub fn reached(&mut self, at: Point) -> Result<(), StoreError> {
        match &mut self.0 {
            Some(fail_point) => fail_point.reached(at),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Hook(..)" } else { "Hook" })
    }
}

/// Fails the step when a point is reached for the `nth` time, counted from 1.
#[derive(Clone, Copy, Debug)]
pub struct FailAt {
    /// Which point; `None` counts all of them together.
    pub point: Option<Point>,
    /// The how-manyth time.
    pub nth: u64,
    reached: u64,
}

impl FailAt {
    /// Not reached yet.
    pub fn new(point: Option<Point>, nth: u64) -> Self {
        FailAt { point, nth, reached: 0 }
    }

    /// Whether this is the one.
    pub(crate) fn is_due(&mut self, at: Point) -> bool {
        self.reached += u64::from(self.point.is_none_or(|point| point == at));
        self.point.is_none_or(|point| point == at) && self.reached == self.nth
    }
}

impl FailPoint for FailAt {
    fn reached(&mut self, at: Point) -> Result<(), StoreError> {
        if self.is_due(at) { Err(StoreError::Injected { at }) } else { Ok(()) }
    }
}

/// Kills the process with SIGKILL where [`FailAt`] would fail.
#[cfg(feature = "fail-points")]
#[derive(Clone, Copy, Debug)]
pub struct KillAt(FailAt);

#[cfg(feature = "fail-points")]
impl KillAt {
    /// The variable that says where, counted from the opening of the database: `sync-within:17`, or `any:17` for the
    /// seventeenth boundary of any kind.
    pub const VARIABLE: &str = "HOMEOSTAT_FAIL_POINT";

    /// What the environment asks for.
    pub fn from_environment() -> Option<Self> {
        Self::parse(&std::env::var(Self::VARIABLE).ok()?)
    }

    /// From `name:count`.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, nth) = text.split_once(':')?;
        let point = if name == "any" { None } else { Some(Point::named(name)?) };
        Some(KillAt(FailAt::new(point, nth.parse().ok()?)))
    }
}

#[cfg(feature = "fail-points")]
impl FailPoint for KillAt {
    fn reached(&mut self, at: Point) -> Result<(), StoreError> {
        if self.0.is_due(at) {
            let killed = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            return killed.map_err(|_| StoreError::Injected { at });
        }
        Ok(())
    }
}
