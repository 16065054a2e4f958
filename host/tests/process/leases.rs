//! Directories, markers, ports, listings.

use std::collections::BTreeSet;
use std::net::TcpListener;

use engine::io::Fault;
use homeostat::backends::Backend;
use homeostat::backends::process::{OpenError, ProcessBackend};

use crate::fixture::{Place, key, request, script, sink, start};

#[tokio::test]
async fn a_create_is_adopted_by_the_next_with_its_key() {
    let place = Place::new();
    let backend = place.open();
    let template = script("sleep 1000");
    let request = request(&key("web-0", 3), &template);
    let first = backend.create(&request).await.unwrap();
    assert_eq!((first.lease.as_str(), first.adopted), ("web-0.3", false));
    assert!(backend.create(&request).await.unwrap().adopted);
    let listing = backend.list("demo").await.unwrap();
    assert!(listing.complete);
    assert_eq!(listing.resources.len(), 1);
    assert_eq!(listing.resources[0].key, Some(key("web-0", 3)));
    assert_eq!(listing.resources[0].template.as_deref(), Some(&template));
    assert!(backend.list("other").await.unwrap().resources.is_empty());
    backend.destroy(&request.key, &first.lease).await.unwrap();
    backend.destroy(&request.key, &first.lease).await.unwrap();
    assert!(backend.list("demo").await.unwrap().resources.is_empty());
    backend.shutdown().await;
    assert!(!place.state().exists(), "nothing is left");
}

#[tokio::test]
async fn a_create_that_was_cut_off_is_completed() {
    let place = Place::new();
    let backend = place.open();
    let request = request(&key("web-0", 1), &script("sleep 1000"));
    for torn in [None, Some(""), Some("{\"schema\": 1, \"requ")] {
        let dir = place.lease("web-0.1");
        std::fs::create_dir(&dir).unwrap();
        if let Some(torn) = torn {
            std::fs::write(dir.join("lease.json"), torn).unwrap();
        }
        assert!(backend.list("demo").await.unwrap().resources.is_empty());
        assert!(!backend.create(&request).await.unwrap().adopted, "{torn:?}");
        assert!(backend.create(&request).await.unwrap().adopted);
        backend.destroy(&request.key, &"web-0.1".into()).await.unwrap();
    }
}

#[tokio::test]
async fn what_is_not_ours_is_never_touched() {
    let place = Place::new();
    let backend = place.open();
    let ours = key("web-0", 1);
    let request = request(&ours, &script("sleep 1000"));
    let dir = place.lease("web-0.1");
    let other_key = {
        let other = place.lease("web-0.2");
        backend.create(&crate::fixture::request(&key("web-0", 2), &script("true"))).await.unwrap();
        // Whole, but somebody else's: without a sum, as it was written before.
        place.edit_marker("web-0.2", "port", serde_json::Value::Null);
        let marker = serde_json::to_string_pretty(&place.marker("web-0.2")).unwrap();
        std::fs::remove_dir_all(&other).unwrap();
        marker
    };
    let other_run = other_key.replace("\"demo\"", "\"theirs\"").replace("\"attempt\": 2", "\"attempt\": 1");
    assert_ne!(other_run, other_key);
    for (file, content) in
        [("notes.txt", "precious"), ("lease.json", "[]"), ("lease.json", &other_key), ("lease.json", &other_run)]
    {
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join(file), content).unwrap();
        assert!(matches!(backend.create(&request).await, Err(Fault::Permanent { .. })), "{content}");
        let lease = "web-0.1".to_owned();
        assert!(matches!(backend.destroy(&ours, &lease).await, Err(Fault::Permanent { .. })), "{content}");
        assert!(matches!(backend.cancel(&ours, &lease, &"1".into()).await, Err(Fault::Permanent { .. })));
        assert!(backend.list("demo").await.unwrap().resources.iter().all(|resource| resource.key.is_none()));
        assert_eq!(std::fs::read_to_string(dir.join(file)).unwrap(), content);
        std::fs::remove_dir_all(&dir).unwrap();
    }
    // A lease that is named is one whose label matches.
    backend.create(&request).await.unwrap();
    let fault = backend.destroy(&key("web-0", 2), &"web-0.1".into()).await.unwrap_err();
    assert!(matches!(fault, Fault::Permanent { .. }), "{fault}");
    assert!(dir.exists());
    let strange = engine::id::ExternalKey { slot: "../x".into(), ..ours };
    assert!(matches!(
        backend.create(&crate::fixture::request(&strange, &script("true"))).await,
        Err(Fault::Permanent { .. })
    ));
}

#[tokio::test]
async fn a_listing_that_could_not_see_all_says_so() {
    let place = Place::new();
    let backend = place.open();
    backend.create(&request(&key("web-0", 1), &script("true"))).await.unwrap();
    std::fs::create_dir_all(place.lease("web-1.2").join("lease.json")).unwrap();
    let listing = backend.list("demo").await.unwrap();
    assert!(!listing.complete);
    assert_eq!(listing.resources.len(), 1);
    let fault = backend.create(&request(&key("web-1", 2), &script("true"))).await.unwrap_err();
    assert!(matches!(fault, Fault::Retryable { .. }), "{fault}");
    std::fs::remove_dir_all(place.lease("web-1.2")).unwrap();
    place.edit_marker("web-0.1", "schema", 99.into());
    assert!(!backend.list("demo").await.unwrap().complete);
    let fault = backend.destroy(&key("web-0", 1), &"web-0.1".into()).await.unwrap_err();
    assert!(fault.to_string().contains("schema 99; this host knows 2"), "{fault}");
    std::fs::remove_dir_all(place.leases()).unwrap();
    assert!(backend.list("demo").await.is_err(), "no directory, no listing");
}

#[tokio::test]
async fn one_host_at_a_time_works_in_a_state_directory() {
    let place = Place::new();
    let backend = place.open();
    assert!(matches!(ProcessBackend::open(place.config()), Err(OpenError::InUse { .. })));
    drop(backend);
    let half = [".new-web-0.1", ".trash-web-0.2", ".trash-notes"].map(|name| place.lease(name));
    for dir in &half {
        std::fs::create_dir(dir).unwrap();
        std::fs::write(dir.join("x"), "x").unwrap();
    }
    place.open();
    assert_eq!(half.each_ref().map(|dir| dir.exists()), [false, false, true], "what was left half done is removed");
}

#[tokio::test]
async fn a_port_stays_unless_somebody_took_it() {
    let place = Place::new();
    let backend = place.open();
    // Where the search for a port begins depends on the name: nobody else has this one.
    let key = key(&format!("port-{}", std::process::id()), 1);
    let lease = backend.create(&request(&key, &script("sleep 1000"))).await.unwrap().lease;
    let first = backend.lookup(&key, &lease).await.unwrap();
    assert_eq!(backend.lookup(&key, &lease).await.unwrap(), first);
    assert!(TcpListener::bind(&first).is_err(), "held until the command starts");
    drop(backend);
    let backend = place.open();
    assert_eq!(backend.lookup(&key, &lease).await.unwrap(), first, "kept over a restart");
    drop(backend);
    let taken = std::cell::OnceCell::new();
    crate::fixture::eventually("the port is free", || {
        TcpListener::bind(&first).is_ok_and(|listener| taken.set(listener).is_ok())
    })
    .await;
    let backend = place.open();
    let (sink, _seen) = sink(&key);
    let template = script("sleep 1000");
    let asked = homeostat::backends::StartRequest { key: &key, lease: &lease, endpoint: &first, template: &template };
    let fault = backend.start(asked, sink).await.unwrap_err();
    assert!(fault.to_string().contains("taken by others"), "{fault}");
    let second = backend.lookup(&key, &lease).await.unwrap();
    assert_ne!(second, first);
    drop(taken);
    backend.destroy(&key, &lease).await.unwrap();
    crate::fixture::eventually("the port is free", || TcpListener::bind(&second).is_ok()).await;
    assert!(matches!(backend.lookup(&key, &lease).await, Err(Fault::Retryable { .. })), "no lease, no port");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ports_are_exclusive_across_hosts() {
    let places = [Place::new(), Place::new()];
    let backends = places.each_ref().map(|place| std::sync::Arc::new(place.open()));
    let template = script("true");
    let mut calls = tokio::task::JoinSet::new();
    for index in 0..50 {
        for backend in &backends {
            let (backend, template) = (backend.clone(), template.clone());
            calls.spawn(async move {
                let key = key(&format!("web-{index}"), 1);
                let lease = backend.create(&request(&key, &template)).await.unwrap().lease;
                backend.lookup(&key, &lease).await.unwrap()
            });
        }
    }
    let endpoints: BTreeSet<String> = calls.join_all().await.into_iter().collect();
    assert_eq!(endpoints.len(), 100);
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let range: Vec<u16> = range.split_whitespace().map(|number| number.parse().unwrap()).collect();
    for endpoint in endpoints {
        let port: u16 = endpoint.rsplit_once(':').unwrap().1.parse().unwrap();
        assert!(port >= 1024 && !(range[0]..=range[1]).contains(&port), "{port}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_are_given_up_are_found_by_the_next() {
    let place = Place::new();
    let backend = place.open();
    let template = script("echo x >> {state}/{node}; exec sleep 1000");
    for round in 0..12u32 {
        let key = key(&format!("web-{round}"), 1);
        let asked = request(&key, &template);
        let short = std::time::Duration::from_micros(u64::from(round) * 900);
        let lease = "web-0.1".replace("-0", &format!("-{round}"));
        let _ = tokio::time::timeout(short, backend.create(&asked)).await;
        assert_eq!(backend.create(&asked).await.unwrap().lease, lease);
        let _ = tokio::time::timeout(short, backend.lookup(&key, &lease)).await;
        let endpoint = backend.lookup(&key, &lease).await.unwrap();
        let (first, _seen) = sink(&key);
        let again =
            homeostat::backends::StartRequest { key: &key, lease: &lease, endpoint: &endpoint, template: &template };
        let _ = tokio::time::timeout(short, backend.start(again, first)).await;
        let node = start(&backend, key.clone(), &template).await;
        assert_eq!(node.endpoint, endpoint);
        let count = place.state().join("shared").join(&key.slot);
        crate::fixture::eventually("it ran", || crate::fixture::lines(&count) == 1).await;
        // A process that is just becoming another program has no environment to be seen.
        crate::fixture::eventually("its label", || place.labelled() == [node.pid()]).await;
        let _ = tokio::time::timeout(short, backend.destroy(&key, &lease)).await;
        node.destroy(&backend).await;
        assert_eq!(place.labelled(), [0; 0]);
        assert_eq!(crate::fixture::lines(&count), 1, "started once");
        assert!(backend.list("demo").await.unwrap().resources.is_empty());
    }
}
