//! What really exists: omniscient providers, keyed and windowed, that hold resources by external key. The engine sees only
//! what its backend shows. Every birth and every end is booked by external key.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::id::{AttemptId, ExternalKey, Millis};
use engine::invariants::Violation;
use engine::io::{self, Done, Fault, LeaseId, Listing, Operation, Promise, Request};
use engine::shape::Template;

/// One resource that exists.
#[derive(Clone, Debug)]
pub struct Resource {
    /// The provider's reference.
    pub lease: LeaseId,
    /// Its label.
    pub key: Option<ExternalKey>,
    /// What it was made from.
    pub template: Option<Arc<Template>>,
    /// Which provider holds it.
    pub provider: usize,
    /// From when on it is shown.
    pub visible_at: Millis,
    /// From when on every complete listing shows it, whatever else is wrong with listings.
    pub promised_at: Millis,
    /// Where it can be reached, from when on.
    pub endpoint: (String, Millis),
    /// Nobody could expect it: it came late, or outlived a crash of the host.
    pub excused: bool,
    /// What runs on it.
    pub session: Option<Session>,
}

/// A bootstrap session that runs.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its number.
    pub number: u64,
    /// The start of the host that listens to it.
    pub heard_by: u64,
    /// Its join probe holds.
    pub joined: bool,
    /// It goes on reporting after it was cancelled.
    pub late_words: bool,
}

/// Births and ends under one attempt's key.
#[derive(Clone, Debug, Default)]
struct Account {
    born: u64,
    destroyed: u64,
    vanished: u64,
}

/// How a new resource starts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Birth {
    /// Nothing shows it for this long.
    pub invisible_ms: u64,
    /// It has no endpoint for this long.
    pub no_endpoint_ms: u64,
    /// It comes when nobody waits for its result any more: nobody looked for its label before.
    pub late: bool,
    /// Nobody could expect it any more.
    pub excused: bool,
    /// From when on every complete listing shows it.
    pub promised_at: Millis,
}

/// All providers.
#[derive(Clone, Debug)]
pub struct World {
    /// Names and promises.
    pub providers: Vec<(String, Promise)>,
    /// What is live.
    pub live: Vec<Resource>,
    /// Destroyed, and shown all the same until an instant.
    ghosts: Vec<(Millis, usize, io::Resource)>,
    accounts: BTreeMap<AttemptId, Account>,
    /// Leases that vanished by themselves.
    pub vanished: BTreeSet<LeaseId>,
    /// Leases of resources that are nobody's business: other runs', and orphans.
    pub strangers: Vec<LeaseId>,
    /// Those of them about which an operator gave an order, or which are taken for ours since the state was lost.
    pub released: BTreeSet<LeaseId>,
    /// What listings showed last time.
    previous: Vec<Vec<io::Resource>>,
    /// Destroys of these leases fail so many times more.
    pub stubborn: BTreeMap<LeaseId, u32>,
    numbers: u64,
    /// What a provider saw that must not be.
    pub violations: Vec<Violation>,
    run: String,
}

impl World {
    /// Providers that hold nothing yet.
    pub fn new(run: &str, providers: Vec<(String, Promise)>) -> Self {
        World {
            previous: vec![Vec::new(); providers.len()],
            providers,
            live: Vec::new(),
            ghosts: Vec::new(),
            accounts: BTreeMap::new(),
            vanished: BTreeSet::new(),
            strangers: Vec::new(),
            released: BTreeSet::new(),
            stubborn: BTreeMap::new(),
            numbers: 0,
            violations: Vec::new(),
            run: run.into(),
        }
    }

    /// The number of a provider.
    pub fn provider(&self, name: &str) -> usize {
        self.providers.iter().position(|(known, _)| known == name).unwrap_or(0)
    }

    /// What a provider promises.
    pub fn promise(&self, provider: usize) -> Promise {
        self.providers.get(provider).map_or(Promise::Keyed, |(_, promise)| *promise)
    }

    /// The number that the next resource or session gets.
    pub fn next_number(&self) -> u64 {
        self.numbers + 1
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn broken(&mut self, id: &'static str, what: String) {
        self.violations.push(Violation { id, what });
    }

    /// Where a resource with this label is.
    pub fn find(&self, key: &ExternalKey) -> Option<usize> {
        self.live.iter().position(|resource| resource.key.as_ref() == Some(key))
    }

    /// Where a resource with this reference is.
    pub fn leased(&self, lease: &str) -> Option<usize> {
        self.live.iter().position(|resource| resource.lease == lease)
    }

    /// A resource that comes by itself: foreign, or an orphan.
    pub fn appear(
        &mut self,
        provider: usize,
        key: Option<ExternalKey>,
        template: Option<Arc<Template>>,
        now: Millis,
    ) -> LeaseId {
        let birth = Birth { late: true, excused: true, promised_at: now, ..Birth::default() };
        self.make(provider, key, template, birth, now)
    }

    fn make(
        &mut self,
        provider: usize,
        key: Option<ExternalKey>,
        template: Option<Arc<Template>>,
        birth: Birth,
        now: Millis,
    ) -> LeaseId {
        let number = self.number();
        let lease = format!("L{number}");
        let at = now + birth.no_endpoint_ms;
        if let Some(key) = key.as_ref().filter(|key| key.run == self.run) {
            self.accounts.entry(key.attempt).or_default().born += 1;
        }
        self.live.push(Resource {
            lease: lease.clone(),
            key: key.clone(),
            template,
            provider,
            visible_at: now + birth.invisible_ms,
            promised_at: birth.promised_at,
            endpoint: (format!("10.0.0.{number}:80"), at),
            excused: birth.excused,
            session: None,
        });
        if let Some(key) = key.filter(|key| key.run == self.run) {
            let same = self.live.iter().filter(|resource| resource.key.as_ref() == Some(&key)).count();
            if same > 1 {
                self.broken("S8", format!("{same} live resources bear {key}"));
            }
            self.balance(&key);
        }
        lease
    }

    /// Births less ends are what is live, per external key.
    fn balance(&mut self, key: &ExternalKey) {
        if key.run != self.run {
            return;
        }
        let Some(account) = self.accounts.get(&key.attempt) else { return };
        let live = self.live.iter().filter(|resource| resource.key.as_ref() == Some(key)).count() as u64;
        let Account { born, destroyed, vanished } = account.clone();
        if born != live + destroyed + vanished {
            self.broken(
                "L3",
                format!("{key}: {born} made, {destroyed} destroyed, {vanished} vanished, and {live} are live"),
            );
        }
    }

    /// A create takes effect. A keyed provider holds one resource a key; a windowed one looks for the label among what it
    /// shows, and makes another when it sees none.
    pub fn create(
        &mut self,
        operation: &Operation,
        template: &Arc<Template>,
        birth: Birth,
        now: Millis,
    ) -> (LeaseId, bool) {
        let provider = self.provider(&operation.provider);
        let key = &operation.key;
        let shown = |resource: &Resource| match self.promise(provider) {
            Promise::Keyed => true,
            Promise::Windowed { .. } => resource.visible_at <= now && !birth.late,
        };
        if let Some(at) = self.find(key).filter(|at| shown(&self.live[*at])) {
            return (self.live[at].lease.clone(), true);
        }
        (self.make(provider, Some(key.clone()), Some(template.clone()), birth, now), false)
    }

    /// Whether another attempt's resource, that nobody may have forgotten, still lives for this slot.
    pub fn predecessor(&self, key: &ExternalKey) -> Option<&Resource> {
        self.live.iter().find(|resource| {
            let other = resource
                .key
                .as_ref()
                .is_some_and(|other| other.attempt != key.attempt && other.slot == key.slot && other.run == key.run);
            other && !resource.excused
        })
    }

    /// What a call other than a create or a start does.
    pub fn perform(
        &mut self,
        operation: &Operation,
        lingers_ms: u64,
        listing: Option<ListingFault>,
        now: Millis,
    ) -> Result<Done, Fault> {
        let gone = || Err(Fault::retryable("404: no such resource"));
        match &operation.request {
            Request::SettleCreate(request) => self.settle(&request.key, listing, now),
            Request::LookupEndpoint { lease } => {
                let Some(at) = self.leased(lease) else { return gone() };
                self.check_label(at, operation);
                let resource = &self.live[at];
                let (endpoint, from) = &resource.endpoint;
                if resource.visible_at > now {
                    return gone();
                }
                if *from > now {
                    return Err(Fault::NotReady { reason: "no address yet".into() });
                }
                Ok(Done::Found { endpoint: endpoint.clone() })
            }
            Request::CancelBootstrap { lease, session } => {
                if let Some(at) = self.leased(lease) {
                    self.check_label(at, operation);
                    let held = &mut self.live[at].session;
                    if held.as_ref().is_some_and(|held| session_name(held.number) == *session) {
                        *held = None;
                    }
                }
                Ok(Done::Cancelled)
            }
            Request::DestroyLease { lease } => {
                if let Some(left) = self.stubborn.get_mut(lease).filter(|left| **left > 0) {
                    *left -= 1;
                    return Err(Fault::retryable("500: it cannot be destroyed now"));
                }
                if let Some(at) = self.leased(lease) {
                    self.check_label(at, operation);
                    if self.strangers.contains(lease) && !self.released.contains(lease) {
                        let (id, key) = (operation.id, &operation.key);
                        let what = format!("{id} destroys {lease} ({key}), which nobody here authorised");
                        self.broken("S15", what);
                    }
                    let resource = self.live.remove(at);
                    if lingers_ms > 0 {
                        self.ghosts.push((now + lingers_ms, resource.provider, shown(&resource)));
                    }
                    if let Some(key) = &resource.key {
                        self.accounts.entry(key.attempt).or_default().destroyed += 1;
                        self.balance(key);
                    }
                }
                Ok(Done::Destroyed)
            }
            Request::CreateLease(_) | Request::StartBootstrap { .. } => gone(),
        }
    }

    /// S15, as the provider sees it.
    fn check_label(&mut self, at: usize, operation: &Operation) {
        let resource = &self.live[at];
        if resource.key.as_ref() != Some(&operation.key) {
            let (id, lease) = (operation.id, &resource.lease);
            let what = format!("{id} touches {lease}, which does not bear {}", operation.key);
            self.broken("S15", what);
        }
    }

    /// A windowed provider looks for a label. What it promised to show by now, it shows.
    fn settle(&mut self, key: &ExternalKey, fault: Option<ListingFault>, now: Millis) -> Result<Done, Fault> {
        let found = self.find(key).map(|at| &self.live[at]);
        match fault {
            Some(ListingFault::Fails) => return Err(Fault::retryable("500: no listing")),
            Some(ListingFault::Partial) => return Err(Fault::retryable("the listing is not complete")),
            Some(ListingFault::Stale | ListingFault::Empty) if found.is_none_or(|held| held.promised_at > now) => {
                return Ok(Done::Absent);
            }
            _ => {}
        }
        match found.filter(|held| held.visible_at <= now || held.promised_at <= now) {
            Some(held) => Ok(Done::Leased { lease: held.lease.clone(), adopted: true }),
            None => Ok(Done::Absent),
        }
    }

    /// A bootstrap starts, or the running one is adopted: its number, whether it ran, whether it has joined already.
    pub fn start(
        &mut self,
        operation: &Operation,
        lease: &str,
        endpoint: &str,
        host: u64,
        now: Millis,
    ) -> Result<(u64, bool, bool), Fault> {
        let Some(at) = self.leased(lease) else { return Err(Fault::retryable("404: no such resource")) };
        self.check_label(at, operation);
        let number = self.number();
        let resource = &mut self.live[at];
        if let Some(session) = &mut resource.session {
            session.heard_by = host;
            return Ok((session.number, true, session.joined));
        }
        if resource.endpoint.0 != endpoint || resource.endpoint.1 > now {
            return Err(Fault::retryable(format!("{endpoint}: connection refused")));
        }
        resource.session = Some(Session { number, heard_by: host, joined: false, late_words: false });
        Ok((number, false, false))
    }

    /// The session of a number, with the attempt it works for.
    pub fn session(&mut self, number: u64) -> Option<(AttemptId, &mut Session)> {
        self.live.iter_mut().find_map(|resource| {
            let attempt = resource.key.as_ref()?.attempt;
            let session = resource.session.as_mut()?;
            (session.number == number).then_some((attempt, session))
        })
    }

    /// A session ended by itself.
    pub fn end_session(&mut self, number: u64) {
        for resource in &mut self.live {
            if resource.session.as_ref().is_some_and(|session| session.number == number) {
                resource.session = None;
            }
        }
    }

    /// A resource is gone, and nothing says so.
    pub fn vanish(&mut self, at: usize) -> Option<Resource> {
        if at >= self.live.len() {
            return None;
        }
        let resource = self.live.remove(at);
        self.vanished.insert(resource.lease.clone());
        if let Some(key) = &resource.key {
            self.accounts.entry(key.attempt).or_default().vanished += 1;
            self.balance(key);
        }
        Some(resource)
    }

    /// The address of a resource changes.
    pub fn move_endpoint(&mut self, lease: &str, now: Millis) -> bool {
        let number = self.number();
        let Some(at) = self.leased(lease) else { return false };
        self.live[at].endpoint = (format!("10.0.1.{number}:80"), now);
        true
    }

    /// What a listing shows, with what is wrong with it; `None` when it fails.
    pub fn list(&mut self, provider: usize, fault: Option<ListingFault>, now: Millis) -> Option<Listing> {
        self.ghosts.retain(|(until, ..)| *until > now);
        let held = self.live.iter().filter(|resource| resource.provider == provider && resource.visible_at <= now);
        let mut resources: Vec<io::Resource> = held.map(shown).collect();
        resources.extend(self.ghosts.iter().filter(|(_, of, _)| *of == provider).map(|(.., ghost)| ghost.clone()));
        match fault {
            None => {
                if let Some(previous) = self.previous.get_mut(provider) {
                    previous.clone_from(&resources);
                }
                Some(Listing { complete: true, resources })
            }
            Some(ListingFault::Stale) => {
                Some(Listing { complete: true, resources: self.previous.get(provider).cloned().unwrap_or_default() })
            }
            Some(ListingFault::Partial) => {
                resources.truncate(resources.len() / 2);
                Some(Listing { complete: false, resources })
            }
            Some(ListingFault::Empty) => Some(Listing { complete: true, resources: Vec::new() }),
            Some(ListingFault::Fails) => None,
        }
    }

    /// The host forgot everything: nobody is to blame for what it made before.
    pub fn excuse_all(&mut self) {
        for resource in &mut self.live {
            resource.excused = true;
        }
    }

    /// The host lost its state and knows a fence only: a label with an attempt below it is that of an earlier start.
    pub fn take_for_ours(&mut self, fence: u64) {
        let below =
            |held: &&Resource| held.key.as_ref().is_some_and(|key| key.run == self.run && key.attempt.0 < fence);
        self.released.extend(self.live.iter().filter(below).map(|held| held.lease.clone()));
    }

    /// Whether anything is still shown that is gone.
    pub fn has_ghosts(&self, now: Millis) -> bool {
        self.ghosts.iter().any(|(until, ..)| *until > now)
    }
}

/// What can be wrong with a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListingFault {
    /// It is from a while ago.
    Stale,
    /// It lacks something and says so.
    Partial,
    /// It is empty and claims to be complete.
    Empty,
    /// There is none.
    Fails,
}

fn shown(resource: &Resource) -> io::Resource {
    io::Resource { lease: resource.lease.clone(), key: resource.key.clone(), template: resource.template.clone() }
}

/// A session's reference.
pub fn session_name(number: u64) -> String {
    format!("S{number}")
}
