//! Homeostat as a library, with a backend of its own: nodes that exist in a map only.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use homeostat::backends::*;
use homeostat::{Host, Shutdown, decide::SandboxedDecider, engine};

/// What there is, by key, with what it was asked for: so a create under a taken key is an adoption ("keyed").
#[derive(Default)]
struct InMemory(Mutex<BTreeMap<ExternalKey, CreateRequest>>);

#[homeostat::async_trait]
impl Backend for InMemory {
    fn promise(&self) -> Promise {
        Promise::Keyed
    }
    async fn create(&self, request: &CreateRequest) -> Result<Leased, Fault> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let adopted = held.insert(request.key.clone(), request.clone()).is_some();
        Ok(Leased { lease: request.key.to_string(), adopted })
    }
    async fn lookup(&self, key: &ExternalKey, _: &LeaseId) -> Result<Endpoint, Fault> {
        Ok(format!("memory:{key}"))
    }
    async fn start(&self, request: StartRequest<'_>, observations: ObservationSink) -> Result<Started, Fault> {
        observations.send(Observation::Joined).await; // a real one goes on reporting from a task
        Ok(Started { session: request.key.to_string(), adopted: false })
    }
    async fn cancel(&self, _: &ExternalKey, _: &LeaseId, _: &SessionId) -> Result<(), Fault> {
        Ok(())
    }
    async fn destroy(&self, key: &ExternalKey, _: &LeaseId) -> Result<(), Fault> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key); // already gone is success
        Ok(())
    }
    async fn list(&self, run: &str) -> Result<Listing, Fault> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_run = held.values().filter(|request| request.key.run == run).cloned();
        let resource =
            |r: CreateRequest| Resource { lease: r.key.to_string(), key: Some(r.key), template: Some(r.template) };
        Ok(Listing { complete: true, resources: of_run.map(resource).collect() })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let shape: engine::shape::ClusterShape = serde_json::from_str(include_str!("shape.json"))?;
    let host = Host::builder(&shape.run).backend("memory", InMemory::default()).decider(SandboxedDecider::built_in()?);
    let host = host.shape(shape).start().await?;
    for node in &host.wait_converged().await?.nodes {
        println!("{} is {} at {}", node.node, node.stage, node.endpoint.as_deref().unwrap_or("?"));
    }
    let end = host.shutdown(Shutdown::TakeDown).await?;
    println!("{}", if end.is_clean() { "nothing is left" } else { "something is left" });
    Ok(())
}
