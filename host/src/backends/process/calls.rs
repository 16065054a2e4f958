//! The provider's calls. Each runs alone for its lease.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use engine::id::AttemptId;
use engine::shape::Template;
use tokio::sync::OwnedMutexGuard;

use super::check::settings;
use super::group::{Ownership, ProcessIdent};
use super::lease::{self, BootRecord, Found, Marker, WORK, fault};
use super::placeholders::Values;
use super::port::HeldPort;
use super::probe::Prober;
use super::session::Session;
use super::spawn::{self, BootProcess};
use super::{Inner, LeaseState};
use crate::backends::{
    CreateRequest, Endpoint, ExternalKey, Fault, LeaseId, Leased, Listing, ObservationSink, Resource, Started,
};

const INTERRUPTED: &str = "its start was cut off, and nothing of it runs";
const LEADERLESS: &str = "exited (not our child; status unknown)";

impl Inner {
    /// Waits until no other call works on the lease.
    async fn enter(&self, name: &str) -> OwnedMutexGuard<LeaseState> {
        loop {
            let lease =
                self.live.lock().unwrap_or_else(PoisonError::into_inner).entry(name.to_owned()).or_default().clone();
            let state = lease.state.clone().lock_owned().await;
            // Destroyed meanwhile: what was waited for is not what the next call will wait for.
            let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
            if live.get(name).is_some_and(|current| Arc::ptr_eq(current, &lease)) {
                return state;
            }
        }
    }

    pub(super) fn name(&self, key: &ExternalKey, lease: &LeaseId) -> Result<String, Fault> {
        match lease::name_of(key) {
            Some(name) if name == *lease => Ok(name),
            _ => Err(Fault::permanent(format!("lease {lease:?} is not that of {key}"))),
        }
    }

    fn label(&self, name: &str, key: &ExternalKey) -> String {
        format!("{}|{key}", self.leases.join(name).display())
    }

    /// The marker, if the directory is this key's; `None` when there is nothing.
    fn marker(&self, name: &str, key: &ExternalKey) -> Result<Option<Box<Marker>>, Fault> {
        match lease::find(&self.leases.join(name)) {
            Found::Absent | Found::Unfinished => Ok(None),
            Found::Lease(marker) if marker.request.key == *key => Ok(Some(marker)),
            Found::Lease(marker) => Err(Fault::permanent(format!("{name} belongs to {}", marker.request.key))),
            Found::Foreign(why) => Err(Fault::permanent(format!("not ours: {why}"))),
            Found::Damaged(why) | Found::Unreadable(why) => Err(Fault::retryable(why)),
        }
    }

    pub(super) fn marker_or_gone(&self, name: &str, key: &ExternalKey) -> Result<Box<Marker>, Fault> {
        let gone = || Fault::retryable(format!("{} is gone", self.leases.join(name).display()));
        self.marker(name, key)?.ok_or_else(gone)
    }

    fn record(&self, name: &str, marker: &Marker) -> Result<(), Fault> {
        let dir = self.leases.join(name);
        lease::write_marker(&dir, marker).map_err(|error| fault("write the marker of", &dir, &error))
    }

    pub(super) async fn create(self: Arc<Self>, request: CreateRequest) -> Result<Leased, Fault> {
        let name = lease::name_of(&request.key);
        let name = name.ok_or_else(|| Fault::permanent(format!("{}: not a key of this provider", request.key)))?;
        let _state = self.enter(&name).await;
        let inner = self.clone();
        let adopted = blocking(move || lease::create(&inner.leases, &request)).await?;
        Ok(Leased { lease: name, adopted })
    }

    pub(super) async fn lookup(self: Arc<Self>, key: ExternalKey, lease: LeaseId) -> Result<Endpoint, Fault> {
        let name = self.name(&key, &lease)?;
        let mut state = self.enter(&name).await;
        let held = state.port.as_ref().map(|held| held.port);
        let inner = self.clone();
        let port = blocking(move || {
            let mut marker = inner.marker_or_gone(&name, &key)?;
            match (held, marker.port) {
                (Some(held), Some(recorded)) if held == recorded => Ok(None),
                // The process has the port, or had it: it stays what it was.
                (_, Some(recorded)) if marker.boot != BootRecord::Never => Ok(Some(inner.ports.keep(recorded, &name))),
                (_, recorded) => {
                    let kept = recorded.and_then(|port| inner.ports.take(port, &name));
                    let found = match kept {
                        Some(kept) => kept,
                        None => inner
                            .ports
                            .find(&key.to_string(), &name)
                            .map_err(|error| Fault::retryable(format!("no loopback port: {error}")))?,
                    };
                    if recorded != Some(found.port) {
                        marker.port = Some(found.port);
                        inner.record(&name, &marker)?;
                    }
                    Ok(Some(found))
                }
            }
        });
        if let Some(port) = port.await? {
            state.port = Some(port);
        }
        let port = state.port.as_ref().ok_or_else(|| Fault::NotReady { reason: "no port yet".into() })?;
        Ok(format!("127.0.0.1:{}", port.port))
    }

    pub(super) async fn start(
        self: Arc<Self>,
        key: ExternalKey,
        lease: LeaseId,
        endpoint: Endpoint,
        template: Template,
        sink: ObservationSink,
    ) -> Result<Started, Fault> {
        self.follow(key, lease, endpoint, template, sink, false).await
    }

    /// Starts or adopts a boot process and follows it. `known`: whoever asks has heard of this session before.
    async fn follow(
        self: Arc<Self>,
        key: ExternalKey,
        lease: LeaseId,
        endpoint: Endpoint,
        template: Template,
        sink: ObservationSink,
        known: bool,
    ) -> Result<Started, Fault> {
        let name = self.name(&key, &lease)?;
        let mut state = self.enter(&name).await;
        stop_session(&mut state).await;
        let dir = self.leases.join(&name);
        let label = self.label(&name, &key);
        let values = self.values(&key, &name, &endpoint)?;
        let prepared = spawn::prepare(&template, &values, &label)?;
        let prober = Prober::new(&template.join, &values, &prepared.env)?;
        let mut marker = self.marker_or_gone(&name, &key)?;

        // A host that takes it over keeps others from its port, as the one before did.
        if let (None, Some(port), true) = (&state.port, marker.port, marker.boot != BootRecord::Never) {
            state.port = Some(self.ports.keep(port, &name));
        }
        let mut adopted = true;
        let process = match (&state.process, &marker.boot) {
            (Some(process), _) => process.clone(),
            (None, BootRecord::Started(ident)) => Arc::new(BootProcess::new(ident.clone())),
            (None, BootRecord::Starting | BootRecord::Never) => {
                // Started by a host that was killed before it could write that down, or under a directory that was lost.
                let seen = self.census.take().await.map_err(Fault::retryable)?;
                let owner = Ownership { label: label.clone(), boot: None };
                let is_seen = seen.iter().any(|one| one.label.as_ref() == Some(&label));
                match owner.leader(&seen) {
                    Some(ident) => {
                        marker.boot = BootRecord::Started(ident.clone());
                        self.record(&name, &marker)?;
                        Arc::new(BootProcess::new(ident))
                    }
                    None if is_seen => Arc::new(BootProcess::gone(LEADERLESS)),
                    None if marker.boot == BootRecord::Starting => Arc::new(BootProcess::gone(INTERRUPTED)),
                    None => {
                        adopted = false;
                        let inner = self.clone();
                        let held = state.port.take();
                        let (held, started) = blocking(move || {
                            let held = inner.port_for_start(held, &name, &marker, &endpoint)?;
                            Ok(inner.boot(&name, *marker, &prepared, held))
                        })
                        .await?;
                        state.port = Some(held);
                        Arc::new(BootProcess::new(started?))
                    }
                }
            }
        };
        let session = match &process.ident {
            Some(ident) => ident.pid.to_string(),
            None => "ended".to_owned(),
        };
        state.process = Some(process.clone());
        let following = Session { process, dir, prober, log_limit: self.config.log_limit_bytes, sink, known };
        let stop = self.stop.clone();
        state.session = Some(self.sessions.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = following.run() => {}
            }
        }));
        Ok(Started { session, adopted })
    }

    /// Follows a boot process that was started before; without a record of one there is nothing to follow.
    pub(super) async fn listen(
        self: Arc<Self>,
        key: ExternalKey,
        lease: LeaseId,
        endpoint: Endpoint,
        template: Template,
        sink: ObservationSink,
    ) -> Result<(), Fault> {
        let name = self.name(&key, &lease)?;
        let started = {
            let state = self.enter(&name).await;
            let marker = self.marker_or_gone(&name, &key)?;
            state.process.is_some() || matches!(marker.boot, BootRecord::Started(_))
        };
        if !started {
            return Err(Fault::retryable(format!("{name}: no boot command is recorded")));
        }
        self.follow(key, lease, endpoint, template, sink, true).await.map(|_| ())
    }

    /// The lease's port, held. After a restart of the host it is taken again; its number cannot change any more.
    fn port_for_start(
        &self,
        held: Option<HeldPort>,
        name: &str,
        marker: &Marker,
        endpoint: &Endpoint,
    ) -> Result<HeldPort, Fault> {
        let asked = endpoint.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let port = marker.port.filter(|port| asked == Some(*port));
        let port = port.ok_or_else(|| Fault::retryable(format!("{endpoint} is not the endpoint of {name}")))?;
        match held {
            Some(held) if held.port == port => Ok(held),
            _ => self.ports.take(port, name).ok_or_else(|| Fault::retryable(format!("{endpoint} is taken by others"))),
        }
    }

    /// Starts the boot command. What is written down first makes sure that it is never started twice.
    fn boot(
        &self,
        name: &str,
        mut marker: Marker,
        prepared: &spawn::Prepared,
        mut held: HeldPort,
    ) -> (HeldPort, Result<ProcessIdent, Fault>) {
        let dir = self.leases.join(name);
        marker.boot = BootRecord::Starting;
        if let Err(fault) = self.record(name, &marker) {
            return (held, Err(fault));
        }
        let spawned = spawn::alone(|| spawn::spawn(&dir, prepared, &mut held));
        let ident = spawned.and_then(|pid| {
            spawn::limit_open_files(pid, self.config.open_files);
            ProcessIdent::of(pid).ok_or_else(|| Fault::retryable(format!("/proc does not show process {pid}")))
        });
        marker.boot = match &ident {
            Ok(ident) => BootRecord::Started(ident.clone()),
            Err(_) => BootRecord::Never,
        };
        // When this fails the process is found by its label.
        let recorded = self.record(name, &marker);
        (held, ident.and_then(|ident| recorded.map(|()| ident)))
    }

    fn values(&self, key: &ExternalKey, name: &str, endpoint: &Endpoint) -> Result<Values, Fault> {
        let (host, port) =
            endpoint.rsplit_once(':').ok_or_else(|| Fault::permanent(format!("{endpoint:?} is not host:port")))?;
        Ok(Values {
            endpoint: endpoint.clone(),
            host: host.into(),
            port: port.into(),
            run: key.run.clone(),
            node: key.slot.clone(),
            attempt: key.attempt.0.to_string(),
            dir: self.leases.join(name).join(WORK).display().to_string(),
            state: self.shared.clone(),
            own: self.self_exe.clone(),
        })
    }

    pub(super) async fn cancel(self: Arc<Self>, key: ExternalKey, lease: LeaseId) -> Result<(), Fault> {
        let name = self.name(&key, &lease)?;
        let mut state = self.enter(&name).await;
        let marker = self.marker(&name, &key)?;
        self.end(&mut state, &name, &key, marker.as_deref()).await
    }

    async fn end(
        &self,
        state: &mut LeaseState,
        name: &str,
        key: &ExternalKey,
        marker: Option<&Marker>,
    ) -> Result<(), Fault> {
        stop_session(state).await;
        let process = state.process.clone().or_else(|| match &marker?.boot {
            BootRecord::Started(ident) => Some(Arc::new(BootProcess::new(ident.clone()))),
            BootRecord::Starting | BootRecord::Never => None,
        });
        let boot = process.as_ref().and_then(|process| process.ident.clone());
        let grace = marker.map_or(self.config.grace, |marker| self.grace(&marker.request.template));
        let owner = Ownership { label: self.label(name, key), boot };
        owner.end(&self.census, grace).await.map_err(Fault::retryable)?;
        if let Some(process) = process {
            process.reap();
        }
        Ok(())
    }

    fn grace(&self, template: &Template) -> Duration {
        settings(template).ok().and_then(|settings| settings.grace).unwrap_or(self.config.grace)
    }

    pub(super) async fn destroy(self: Arc<Self>, key: ExternalKey, lease: LeaseId) -> Result<(), Fault> {
        let name = self.name(&key, &lease)?;
        let mut state = self.enter(&name).await;
        let marker = self.marker(&name, &key)?;
        self.end(&mut state, &name, &key, marker.as_deref()).await?;
        let is_ours = marker.is_some();
        let port = state.port.take().map(|held| held.port).or(marker.and_then(|marker| marker.port));
        let inner = self.clone();
        let removed = name.clone();
        blocking(move || {
            if is_ours {
                inner.keep_output(&removed, &key);
            }
            lease::remove(&inner.leases, &removed)
                .map_err(|error| fault("remove", &inner.leases.join(&removed), &error))
        })
        .await?;
        if let Some(port) = port {
            self.ports.forget(port, &name);
        }
        *state = LeaseState::default();
        self.live.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
        Ok(())
    }

    pub(super) async fn list(self: Arc<Self>, run: String) -> Result<Listing, Fault> {
        let seen = self.census.take().await.map_err(Fault::retryable)?;
        blocking(move || {
            let mut listing = self.list_directories(&run)?;
            // A process whose directory somebody removed is still there.
            let lost: BTreeSet<(LeaseId, ExternalKey)> = seen
                .iter()
                .filter_map(|one| self.parse_label(one.label.as_deref()?))
                .filter(|(name, key)| key.run == run && listing.resources.iter().all(|one| one.lease != *name))
                .collect();
            let lost = lost.into_iter().map(|(lease, key)| Resource { lease, key: Some(key), template: None });
            listing.resources.extend(lost);
            Ok(listing)
        })
        .await
    }

    fn list_directories(&self, run: &str) -> Result<Listing, Fault> {
        let names = lease::names(&self.leases).map_err(|error| fault("list", &self.leases, &error))?;
        let mut listing = Listing { complete: true, resources: Vec::new() };
        for name in names {
            let resource = match lease::find(&self.leases.join(&name)) {
                Found::Lease(marker) if marker.request.key.run == run => {
                    let CreateRequest { key, template } = marker.request;
                    Resource { lease: name, key: Some(key), template: Some(template) }
                }
                // It is there; whose it is, nobody can rely on.
                Found::Foreign(_) | Found::Damaged(_) => Resource { lease: name, key: None, template: None },
                // Whatever it is, it bears no label: the create that was cut off is made again or never mattered.
                Found::Lease(_) | Found::Absent | Found::Unfinished => continue,
                Found::Unreadable(_) => {
                    listing.complete = false;
                    continue;
                }
            };
            listing.resources.push(resource);
        }
        Ok(listing)
    }

    /// The lease and the key of a label that this state directory gave out.
    fn parse_label(&self, label: &str) -> Option<(LeaseId, ExternalKey)> {
        let (_, key) = label.rsplit_once('|')?;
        let mut parts = key.split('/');
        let (run, slot, attempt) = (parts.next()?, parts.next()?, parts.next()?.parse().ok()?);
        let key = ExternalKey { run: run.into(), slot: slot.into(), attempt: AttemptId(attempt) };
        let name = lease::name_of(&key)?;
        (self.label(&name, &key) == label).then_some((name, key))
    }
}

async fn stop_session(state: &mut LeaseState) {
    if let Some(session) = state.session.take() {
        session.abort();
        let _ = session.await;
    }
}

/// File-system work, off the runtime's threads.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Fault::Ambiguous { reason: format!("the work was cut off: {error}") }))
}
