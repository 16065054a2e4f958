//! One call: a store, an instance, the function; all of it dropped afterwards, so that nothing survives and a trapped
//! store is never entered again.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

use decider::v1_0::{self, without_surge};
use decider::{Description, Plan, Snapshot};
use wasmtime::Store;
use wasmtime::component::{ComponentExportIndex, ComponentNamedList, Func, Instance, InstancePre, Lower, TypedFunc};

use super::contract::Contract;
use super::failure::GuestFailure;
use super::limits::Limits;
use super::store::{Usage, store};

type Reconcile<'a, S> = TypedFunc<(&'a S,), (Plan,)>;

/// Why a checked call gave no answer.
pub(super) enum Stop {
    /// The function has another type.
    Signature(String),
    /// The guest failed.
    Failure(GuestFailure),
}

/// A fresh store with an instance in it.
fn instantiate(
    pre: &InstancePre<Usage>,
    limits: &Limits,
    ticks: u64,
    nodes: usize,
) -> Result<(Store<Usage>, Instance), GuestFailure> {
    let mut store = store(pre.engine(), limits, ticks, nodes).map_err(host)?;
    match pre.instantiate(&mut store) {
        Ok(instance) => Ok((store, instance)),
        Err(error) => Err(GuestFailure::classify(&error, store.data(), limits, nodes)),
    }
}

fn host(error: wasmtime::Error) -> GuestFailure {
    GuestFailure::Host { reason: format!("{error:#}") }
}

fn function(store: &mut Store<Usage>, instance: &Instance, index: &ComponentExportIndex) -> Result<Func, GuestFailure> {
    let missing = || GuestFailure::Host { reason: "an export that was there at admission is gone".into() };
    instance.get_func(store, index).ok_or_else(missing)
}

/// Asks a component what it is, after checking the function's type.
pub(super) fn describe(
    pre: &InstancePre<Usage>,
    index: &ComponentExportIndex,
    limits: &Limits,
    ticks: u64,
) -> Result<Description, Stop> {
    let (mut store, instance) = instantiate(pre, limits, ticks, 0).map_err(Stop::Failure)?;
    let function = function(&mut store, &instance, index).map_err(Stop::Failure)?;
    let typed = function.typed::<(), (Description,)>(&store).map_err(|error| Stop::Signature(format!("{error:#}")))?;
    match typed.call(&mut store, ()) {
        Ok((description,)) => Ok(description),
        Err(error) => Err(Stop::Failure(GuestFailure::classify(&error, store.data(), limits, 0))),
    }
}

/// Asks for a plan, after checking the function's type. To be done once before [`reconcile`].
pub(super) fn reconcile_checked(
    pre: &InstancePre<Usage>,
    (index, contract): (&ComponentExportIndex, Contract),
    snapshot: &Snapshot,
    limits: &Limits,
    ticks: u64,
) -> Result<Plan, Stop> {
    let (mut store, instance) = instantiate(pre, limits, ticks, snapshot.nodes.len()).map_err(Stop::Failure)?;
    let function = function(&mut store, &instance, index).map_err(Stop::Failure)?;
    let signature = |error| Stop::Signature(format!("{error:#}"));
    let (answer, _) = match contract {
        Contract::V1_0 => {
            let shown = without_surge(snapshot);
            let typed: Reconcile<v1_0::Snapshot<'_>> = function.typed(&store).map_err(signature)?;
            answer(typed, store, &v1_0::Snapshot::from(shown.as_ref()), shown.nodes.len(), limits)
        }
        Contract::V1_1 => {
            let typed: Reconcile<Snapshot> = function.typed(&store).map_err(signature)?;
            answer(typed, store, snapshot, snapshot.nodes.len(), limits)
        }
    };
    answer.map_err(Stop::Failure)
}

/// Asks for a plan.
///
/// # Safety
///
/// [`reconcile_checked`] has found the function at `index` of this component to have the type of that contract.
pub(super) unsafe fn reconcile(
    pre: &InstancePre<Usage>,
    (index, contract): (&ComponentExportIndex, Contract),
    snapshot: &Snapshot,
    limits: &Limits,
    ticks: u64,
    used: &AtomicU64,
) -> Result<Plan, GuestFailure> {
    let nodes = snapshot.nodes.len();
    let (mut store, instance) = instantiate(pre, limits, ticks, nodes)?;
    let function = function(&mut store, &instance, index)?;
    let (answer, left) = match contract {
        Contract::V1_0 => {
            let shown = without_surge(snapshot);
            // SAFETY: the type of an export belongs to the component, and the caller has checked this one's.
            let typed: Reconcile<v1_0::Snapshot<'_>> = unsafe { TypedFunc::new_unchecked(function) };
            answer(typed, store, &v1_0::Snapshot::from(shown.as_ref()), nodes, limits)
        }
        Contract::V1_1 => {
            // SAFETY: as above.
            let typed: Reconcile<Snapshot> = unsafe { TypedFunc::new_unchecked(function) };
            answer(typed, store, snapshot, nodes, limits)
        }
    };
    used.store(limits.fuel(nodes).saturating_sub(left), Ordering::Relaxed);
    answer
}

/// The answer, and the fuel that is left.
fn answer<'a, S>(
    typed: Reconcile<'a, S>,
    mut store: Store<Usage>,
    snapshot: &'a S,
    nodes: usize,
    limits: &Limits,
) -> (Result<Plan, GuestFailure>, u64)
where
    (&'a S,): ComponentNamedList + Lower,
{
    let answer = match typed.call(&mut store, (snapshot,)) {
        Ok((plan,)) => Ok(plan),
        Err(error) => Err(GuestFailure::classify(&error, store.data(), limits, nodes)),
    };
    (answer, store.get_fuel().unwrap_or_default())
}
