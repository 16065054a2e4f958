//! What a caller holds of a running host.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use engine::command::Consequences;
use engine::driver::Driver;
use engine::id::{Millis, OperationId};
use engine::io::Notice;
use engine::policy::Policy;
use engine::shape::{ClusterShape, ShapeError};
use engine::view::View;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use super::deciders::{Act, Shared};
use super::declare::Declaration;
use super::operate::{CommandReport, Exported, Order, Refused};
use super::{HostError, HostEvent};
use crate::clock::Clock;
use crate::executor::cause_of;

/// How a host ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Everything is taken down first, in order, and a last listing of every backend shows that nothing is left. It takes as long
    /// as it takes; [`Shutdown::Keep`] cuts it short.
    TakeDown,
    /// The fleet is left as it is, to be adopted by the next host of the run.
    Keep,
}

/// What a host says last.
#[derive(Clone, Debug, PartialEq)]
pub struct Farewell {
    /// What the fleet looked like at the end. Nodes with an attempt and orphans are left behind.
    pub view: Arc<View>,
    /// Operations that did not end in time; they may still happen.
    pub given_up: Vec<OperationId>,
    /// Backends that gave no listing after the take-down, so that nothing is known of late arrivals, with their words.
    pub unlisted: Vec<(String, String)>,
}

impl Farewell {
    /// Whether nothing of the run is left, as far as can be known.
    pub fn is_clean(&self) -> bool {
        let view = &self.view;
        let held = view.nodes.iter().any(|node| node.attempt.is_some());
        !held
            && view.reaping.is_empty()
            && view.orphans.is_empty()
            && self.given_up.is_empty()
            && self.unlisted.is_empty()
    }
}

pub(super) type Outcome = Option<Result<Arc<Farewell>, Arc<HostError>>>;

/// Looks at the driver, on the loop.
pub(super) type Look = Box<dyn FnOnce(&Driver) + Send>;

pub(crate) enum Ask {
    Operate(Box<Order>, oneshot::Sender<Result<CommandReport, HostError>>),
    Look(Look),
    Foresee(Box<engine::command::Command>, oneshot::Sender<(u64, Result<Consequences, Refused>)>),
    Export(oneshot::Sender<Result<Exported, HostError>>),
    Declare(Box<Declaration>, oneshot::Sender<Result<u64, HostError>>),
    Shape(Box<ClusterShape>, oneshot::Sender<Result<(), HostError>>),
    Policy(Box<Policy>),
    Within(Act),
    Ping(oneshot::Sender<()>),
    Shutdown(Shutdown),
}

/// A running host. Clones hold the same one; when the last is dropped, the host ends as with [`Shutdown::Keep`].
#[derive(Clone, Debug)]
pub struct HostHandle {
    pub(super) asks: mpsc::Sender<Ask>,
    pub(super) views: watch::Receiver<Arc<View>>,
    pub(super) events: broadcast::Sender<HostEvent>,
    pub(super) outcome: watch::Receiver<Outcome>,
    pub(super) opening: Arc<[Notice]>,
    pub(super) said: Arc<[String]>,
    pub(super) refused: Option<Arc<ShapeError>>,
    pub(super) clock: Clock,
    pub(super) shared: Arc<Shared>,
}

impl HostHandle {
    /// Gives the fleet a new shape: all of it, or, if it is refused, nothing (SPEC 2).
    ///
    /// # Errors
    ///
    /// [`HostError::Shape`] with the field and the value; [`HostError::Ended`] when the host is ending.
    pub async fn update_shape(&self, shape: ClusterShape) -> Result<(), HostError> {
        let (reply, answer) = oneshot::channel();
        if self.asks.send(Ask::Shape(Box::new(shape), reply)).await.is_err() {
            return Err(self.ended());
        }
        answer.await.unwrap_or_else(|_| Err(self.ended()))
    }

    /// Takes a declared fleet over: all of it, or, if it is refused, nothing; and nothing if it was taken over before. Answers
    /// the generation in force.
    ///
    /// # Errors
    ///
    /// [`HostError::Shape`] with the field and the value; [`HostError::Ended`] when the host is ending.
    pub async fn declare(&self, declared: Declaration) -> Result<u64, HostError> {
        let (reply, answer) = oneshot::channel();
        if self.asks.send(Ask::Declare(Box::new(declared), reply)).await.is_err() {
            return Err(self.ended());
        }
        answer.await.unwrap_or_else(|_| Err(self.ended()))
    }

    /// Gives the host other settings. Deadlines that are stored already stay as they are.
    ///
    /// # Errors
    ///
    /// [`HostError::Ended`] when the host has ended.
    pub async fn update_policy(&self, policy: Policy) -> Result<(), HostError> {
        self.asks.send(Ask::Policy(Box::new(policy))).await.map_err(|_| self.ended())
    }

    /// Carries out what an operator asks for, once for each id (SPEC 10): when this returns, the command, its result and all
    /// that follows from it in the driver are durable together. The same order again gets the first report.
    ///
    /// # Errors
    ///
    /// [`HostError::Order`] for an id that is empty, too long or was used for something else, and when the host has no store;
    /// [`HostError::Ended`] when it is ending. A command that the driver refuses is no error: the report says it.
    pub async fn command(&self, order: Order) -> Result<CommandReport, HostError> {
        let (reply, answer) = oneshot::channel();
        if self.asks.send(Ask::Operate(Box::new(order), reply)).await.is_err() {
            return Err(self.ended());
        }
        answer.await.unwrap_or_else(|_| Err(self.ended()))
    }

    /// What a command would do now, and the generation in force. Nothing changes. Where a guard refuses it,
    /// [`Consequences::beyond`] says which.
    ///
    /// # Errors
    ///
    /// [`HostError::Ended`] when the host has ended.
    pub async fn foresee(
        &self,
        command: engine::command::Command,
    ) -> Result<(u64, Result<Consequences, Refused>), HostError> {
        let (reply, answer) = oneshot::channel();
        if self.asks.send(Ask::Foresee(Box::new(command), reply)).await.is_err() {
            return Err(self.ended());
        }
        answer.await.map_err(|_| self.ended())
    }

    /// The driver's checkpoint, and where the journal stands.
    ///
    /// # Errors
    ///
    /// [`HostError::Ended`] when the host has ended.
    pub async fn export(&self) -> Result<Exported, HostError> {
        let (reply, answer) = oneshot::channel();
        if self.asks.send(Ask::Export(reply)).await.is_err() {
            return Err(self.ended());
        }
        answer.await.unwrap_or_else(|_| Err(self.ended()))
    }

    /// Looks at the driver between two inputs. The loop waits for it: it has to be quick.
    ///
    /// # Errors
    ///
    /// [`HostError::Ended`] when the host has ended; [`HostError::Panicked`] when `look` panicked, which changes nothing.
    pub async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Driver) -> T + Send + 'static,
    ) -> Result<T, HostError> {
        let (reply, answer) = oneshot::channel();
        // Whoever asked may be gone.
        let look: Look = Box::new(move |driver| {
            let seen = catch_unwind(AssertUnwindSafe(|| look(driver)));
            drop(reply.send(seen.map_err(|cause| cause_of(&*cause))));
        });
        if self.asks.send(Ask::Look(look)).await.is_err() {
            return Err(self.ended());
        }
        let seen = answer.await.map_err(|_| self.ended())?;
        seen.map_err(|words| HostError::Panicked { what: "the closure that looked at the driver", words })
    }

    /// Answers as soon as the loop gets to it: for whoever watches over the host.
    ///
    /// # Errors
    ///
    /// [`HostError::Ended`] when the host has ended.
    pub async fn ping(&self) -> Result<(), HostError> {
        let (reply, answer) = oneshot::channel();
        if self.asks.send(Ask::Ping(reply)).await.is_err() {
            return Err(self.ended());
        }
        answer.await.map_err(|_| self.ended())
    }

    /// Waits until the fleet has the latest shape (SPEC 8), and shows it. Put a time limit around it.
    ///
    /// # Errors
    ///
    /// [`HostError::Ended`] when the host ends before.
    pub async fn wait_converged(&self) -> Result<Arc<View>, HostError> {
        let mut views = self.views.clone();
        loop {
            let view = views.borrow_and_update().clone();
            if view.converged {
                return Ok(view);
            }
            if views.changed().await.is_err() {
                return Err(self.ended());
            }
        }
    }

    /// Ends the host, and waits until it has ended. A second call with [`Shutdown::Keep`] cuts a take-down short.
    ///
    /// # Errors
    ///
    /// Why the host failed, if it did.
    pub async fn shutdown(&self, how: Shutdown) -> Result<Arc<Farewell>, HostError> {
        // It may have ended by itself; the outcome says so.
        let _ = self.asks.send(Ask::Shutdown(how)).await;
        self.wait_ended().await
    }

    /// Waits until the host has ended, for whatever reason.
    ///
    /// # Errors
    ///
    /// Why the host failed, if it did.
    pub async fn wait_ended(&self) -> Result<Arc<Farewell>, HostError> {
        let mut outcome = self.outcome.clone();
        match outcome.wait_for(Option::is_some).await.map(|ended| ended.clone()) {
            Ok(Some(Ok(farewell))) => Ok(farewell),
            _ => Err(self.ended()),
        }
    }

    /// The host's clock.
    pub fn now_ms(&self) -> Millis {
        self.clock.now_ms()
    }

    /// The fleet as it is now.
    pub fn view(&self) -> Arc<View> {
        self.views.borrow().clone()
    }

    /// The fleet as it changes: always the latest view; those in between may be skipped.
    pub fn watch(&self) -> watch::Receiver<Arc<View>> {
        self.views.clone()
    }

    /// What there was to say before anybody could listen: what the start found.
    pub fn opening(&self) -> &[Notice] {
        &self.opening
    }

    /// Why the shape that was declared at the start was refused, where the host went on with the one in force
    /// ([`super::HostBuilder::go_on`]).
    pub fn refused(&self) -> Option<&ShapeError> {
        self.refused.as_deref()
    }

    /// What the start found about deciders, in words.
    pub fn opening_about_deciders(&self) -> &[String] {
        &self.said
    }

    /// What happens from now on, one by one. A reader that falls behind is told how much it missed.
    pub fn events(&self) -> broadcast::Receiver<HostEvent> {
        self.events.subscribe()
    }

    fn ended(&self) -> HostError {
        HostError::Ended(match &*self.outcome.borrow() {
            Some(Err(error)) => error.to_string(),
            Some(Ok(_)) => "it was shut down".into(),
            None => "its task is gone".into(),
        })
    }
}
