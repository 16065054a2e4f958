//! What is counted when.

use std::sync::Arc;
use std::time::Duration;

use api::Refusal;
use api::metrics::Metrics;
use api::wire::{Command, CommandResult, GroupStatus, Node, Status};
use engine::id::{AttemptId, ExternalKey, OperationId};
use engine::io::{DeciderFailure, Done, Fault, Input, Notice, Operation, OperationStatus, Output, Request};

use crate::text::Text;

const PASS: &[(&str, &str)] = &[("controller", "demo")];
const QUEUE: &[(&str, &str)] = &[("name", "demo"), ("controller", "demo")];

fn read(metrics: &Metrics) -> Text {
    Text::parse(&metrics.render(&crate::status()).unwrap())
}

fn results(text: &Text) -> [f64; 4] {
    ["success", "error", "requeue", "requeue_after"].map(|result| {
        text.get("controller_runtime_reconcile_total", &[("controller", "demo"), ("result", result)]).unwrap()
    })
}

fn decide(call: u64) -> Output {
    Output::Decide { call, snapshot: Arc::default() }
}

fn decided(call: u64) -> Input {
    Input::Decided { call, result: Ok(decider::Plan::default()) }
}

fn failure(class: &str) -> DeciderFailure {
    DeciderFailure { decider: "sha256:ab".into(), class: class.into(), detail: "it went wrong".into() }
}

fn operation(sequence: u64) -> (OperationId, Output) {
    let id = OperationId { attempt: AttemptId(1), sequence };
    let key = ExternalKey { run: "demo".into(), slot: "web-0".into(), attempt: AttemptId(1) };
    let request = Request::LookupEndpoint { lease: "l".into() };
    (id, Output::Submit(Operation { id, key, provider: "process".into(), request, deadline_ms: 9 }))
}

/// Gives every metric a value.
pub fn some_of_everything(metrics: &Metrics) {
    metrics.taken(&Input::Tick);
    metrics.put_out(&decide(1));
    metrics.taken(&Input::Decided { call: 1, result: Err(failure("trap")) });
    let (id, submit) = operation(1);
    metrics.put_out(&submit);
    metrics.put_out(&operation(2).1);
    metrics.put_out(&Output::Notice(Notice::DeciderRecovered));
    metrics.rested(true);
    metrics.taken(&Input::Completed { id, result: Ok(Done::Found { endpoint: "127.0.0.1:1".into() }) });
    metrics.decider_fuel(12_345);
    metrics.journal(4096, 17);
    metrics.committed(Duration::from_millis(3));
    metrics.switched(Duration::from_millis(4));
    metrics.listing_failed("process");
    let guard = Refusal::Guard("no".into());
    metrics.command(&Command::AddNode { group: "web".into() }, Err(&guard));
    metrics.request("/v1/status", 200);
}

#[test]
fn a_pass_ends_in_one_of_four_ways() {
    let metrics = crate::metrics();
    assert_eq!(results(&read(&metrics)), [0.0; 4], "all are there from the start");
    // Nothing to wait for.
    metrics.taken(&Input::Tick);
    metrics.put_out(&decide(1));
    metrics.rested(false);
    let text = read(&metrics);
    assert_eq!(text.get("controller_runtime_active_workers", PASS), Some(1.0));
    assert_eq!(text.get("workqueue_depth", QUEUE), Some(0.0));
    assert!(text.get("workqueue_longest_running_processor_seconds", QUEUE).unwrap() > 0.0);
    metrics.taken(&decided(1));
    metrics.rested(false);
    assert_eq!(results(&read(&metrics)), [1.0, 0.0, 0.0, 0.0]);
    // Something is waited for.
    metrics.taken(&Input::Tick);
    metrics.put_out(&decide(2));
    metrics.rested(true);
    metrics.taken(&decided(2));
    metrics.rested(true);
    assert_eq!(results(&read(&metrics)), [1.0, 0.0, 0.0, 1.0]);
    // Two triggers while it runs are one further pass.
    metrics.taken(&Input::Tick);
    metrics.put_out(&decide(3));
    metrics.rested(true);
    metrics.taken(&Input::Tick);
    metrics.rested(true);
    metrics.taken(&Input::Resync);
    metrics.rested(true);
    assert_eq!(read(&metrics).get("workqueue_depth", QUEUE), Some(1.0));
    metrics.taken(&decided(3));
    metrics.put_out(&decide(4));
    metrics.rested(true);
    assert_eq!(results(&read(&metrics)), [1.0, 0.0, 1.0, 1.0]);
    // The decider fails.
    metrics.taken(&Input::Decided { call: 4, result: Err(failure("out-of-fuel")) });
    metrics.put_out(&Output::Notice(Notice::DeciderFailed { nodes: Vec::new(), failure: failure("out-of-fuel") }));
    metrics.put_out(&decide(5));
    metrics.rested(true);
    let text = read(&metrics);
    assert_eq!(results(&text), [1.0, 1.0, 1.0, 1.0]);
    assert_eq!(text.get("homeostat_decider_failures_total", &[("class", "out-of-fuel")]), Some(1.0), "once");
    assert_eq!(text.get("workqueue_retries_total", QUEUE), Some(1.0));
    // A plan comes and is refused.
    metrics.taken(&decided(5));
    metrics.put_out(&Output::Notice(Notice::DeciderFailed { nodes: Vec::new(), failure: failure("invalid-plan") }));
    metrics.rested(true);
    let text = read(&metrics);
    assert_eq!(results(&text), [1.0, 2.0, 1.0, 1.0]);
    assert_eq!(text.get("controller_runtime_reconcile_errors_total", PASS), Some(2.0));
    assert_eq!(text.get("homeostat_decider_failures_total", &[("class", "invalid-plan")]), Some(1.0));
    assert_eq!(text.get("controller_runtime_reconcile_time_seconds_count", PASS), Some(5.0));
    assert_eq!(text.get("workqueue_work_duration_seconds_count", QUEUE), Some(5.0));
    assert_eq!(text.get("workqueue_queue_duration_seconds_count", QUEUE), Some(5.0));
    assert_eq!(text.get("workqueue_adds_total", QUEUE), Some(5.0));
    assert_eq!(text.get("controller_runtime_active_workers", PASS), Some(0.0));
    assert_eq!(text.get("workqueue_unfinished_work_seconds", QUEUE), Some(0.0));
}

#[test]
fn an_operation_is_counted_once_by_its_end() {
    let metrics = crate::metrics();
    let outcome = |text: &Text, outcome: &str| {
        let labels = [("backend", "process"), ("kind", "lookup-endpoint"), ("outcome", outcome)];
        text.get("homeostat_operations_total", &labels)
    };
    let ends = [
        Ok(Done::Cancelled),
        Err(Fault::NotReady { reason: "not yet".into() }),
        Err(Fault::retryable("busy")),
        Err(Fault::permanent("never")),
        Err(Fault::Ambiguous { reason: "lost".into() }),
    ];
    for (sequence, result) in (1..).zip(ends) {
        let (id, submit) = operation(sequence);
        metrics.put_out(&submit);
        assert_eq!(read(&metrics).get("homeostat_operations_running", &[("backend", "process")]), Some(1.0));
        metrics.taken(&Input::Completed { id, result });
    }
    let (late, submit) = operation(9);
    metrics.put_out(&submit);
    metrics.taken(&Input::Answered { id: late, status: OperationStatus::Completed });
    metrics.taken(&Input::Answered { id: late, status: OperationStatus::Ambiguous });
    metrics.taken(&Input::Completed { id: late, result: Ok(Done::Cancelled) });
    let text = read(&metrics);
    for (name, count) in [("done", 1.0), ("not-ready", 1.0), ("retryable", 1.0), ("permanent", 1.0), ("ambiguous", 2.0)]
    {
        assert_eq!(outcome(&text, name), Some(count), "{name}");
    }
    let labels = [("backend", "process"), ("kind", "lookup-endpoint")];
    assert_eq!(text.get("homeostat_operation_seconds_count", &labels), Some(6.0));
    assert_eq!(text.get("homeostat_operations_running", &[("backend", "process")]), None);
}

#[test]
fn the_fleet_is_read_from_the_status() {
    let metrics = crate::metrics();
    let text = read(&metrics);
    let nodes = |group: &str, stage: &str| text.get("homeostat_nodes", &[("group", group), ("stage", stage)]);
    assert_eq!(nodes("web", "dormant"), Some(1.0));
    assert_eq!(nodes("web", "new"), Some(1.0));
    assert_eq!(nodes("web", "failed"), Some(0.0), "no gap");
    assert_eq!(nodes("db", "failed"), Some(1.0));
    assert_eq!(text.of("homeostat_nodes").iter().map(|sample| sample.value).sum::<f64>(), 3.0);
    assert_eq!(text.get("homeostat_desired_nodes", &[("group", "web")]), Some(2.0));
    assert_eq!(text.get("homeostat_ready_nodes", &[("group", "web")]), Some(1.0));
    assert_eq!(text.get("homeostat_failing_nodes", &[("group", "db")]), Some(1.0));
    assert_eq!(text.get("homeostat_held_nodes", &[("group", "web")]), Some(1.0));
    assert_eq!(text.get("homeostat_missing_nodes", &[("group", "web")]), Some(1.0));
    assert_eq!(text.get("homeostat_missing_nodes", &[("group", "db")]), Some(0.0), "one that failed is not missing");
    assert_eq!(text.get("homeostat_fleet_file_refused", &[]), Some(1.0));
    assert_eq!(text.get("homeostat_generation", &[]), Some(4.0));
    assert_eq!(text.get("homeostat_observed_generation", &[]), Some(3.0));
    assert_eq!(text.get("homeostat_converged", &[]), Some(0.0));
    assert_eq!(text.get("homeostat_orphans", &[]), Some(1.0));
    assert_eq!(text.get("homeostat_reaping", &[]), Some(2.0));
    assert_eq!(text.get("homeostat_decider_failing", &[]), Some(1.0));
    let guard = [("scope", "fleet"), ("only", "destroy"), ("by", "destroys-per-minute")];
    assert_eq!(text.get("homeostat_paused", &guard), Some(1.0));
    assert_eq!(text.get("homeostat_paused", &[("scope", "web"), ("only", "create"), ("by", "operator")]), Some(1.0));
    assert_eq!(text.of("homeostat_decider_info")[0].labels["name"], "say \"hi\"\nback\\slash");
    for process in ["process_resident_memory_bytes", "process_open_fds", "process_threads", "process_max_fds"] {
        assert!(text.get(process, &[]).unwrap() >= 1.0, "{process}");
    }
    let started = text.get("process_start_time_seconds", &[]).unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    assert!(now - started < 3600.0 && started <= now + 2.0, "started {started}, now {now}");
    // A group that vanishes leaves nothing behind; nor does a pause.
    let empty = Text::parse(&metrics.render(&Status::default()).unwrap());
    for name in ["homeostat_nodes", "homeostat_desired_nodes", "homeostat_held_nodes", "homeostat_paused"] {
        assert!(empty.of(name).is_empty(), "{name}");
    }
    assert_eq!(empty.of("homeostat_decider_info").len(), 1);
}

#[test]
fn labels_are_few_whatever_the_fleet() {
    let metrics = crate::metrics();
    let mut status = Status::default();
    for group in 0..1000 {
        let name = format!("g{group}");
        status.groups.push(GroupStatus { group: name.clone(), desired: 1, ..GroupStatus::default() });
        for index in 0..10 {
            let stage = if index == 0 { "a stage of the future".into() } else { "dormant".to_owned() };
            let node = format!("{name}-{index}");
            status.nodes.push(Node { node, group: name.clone(), index, stage, ..Node::default() });
        }
    }
    status.decider.name = "x".repeat(10_000);
    for class in 0..1000 {
        metrics.taken(&Input::Decided { call: class, result: Err(failure(&format!("class-{class}"))) });
    }
    let before = metrics.render(&status).unwrap();
    let text = Text::parse(&before);
    assert_eq!(text.of("homeostat_desired_nodes").len(), 201);
    assert_eq!(text.get("homeostat_desired_nodes", &[("group", "_others")]), Some(800.0));
    let others = text.get("homeostat_nodes", &[("group", "_others"), ("stage", "other")]);
    assert_eq!(others, Some(800.0));
    assert_eq!(text.of("homeostat_decider_info")[0].labels["name"].len(), 80);
    assert_eq!(text.of("homeostat_decider_failures_total").len(), 33);
    let nodes: f64 = text.of("homeostat_nodes").iter().map(|sample| sample.value).sum();
    assert_eq!(nodes, 10_000.0);
    let named = text.samples.iter().flat_map(|sample| sample.labels.values());
    assert!(named.into_iter().all(|value| !status.nodes.iter().any(|node| node.node == *value)), "no node is a label");
}

#[test]
fn commands_requests_and_watchers() {
    let metrics = crate::metrics();
    let pause = Command::Pause { group: None, only: api::wire::Only::All };
    let done = CommandResult::default();
    metrics.command(&pause, Ok(&done));
    metrics.command(&pause, Ok(&CommandResult { replayed: true, ..done }));
    for refusal in
        [Refusal::NotFound, Refusal::Invalid, Refusal::Conflict, Refusal::Guard, Refusal::Unavailable, Refusal::Failed]
    {
        metrics.command(&pause, Err(&refusal("no".into())));
    }
    for code in [0, 7, 200, 404, u16::MAX] {
        metrics.request("/v1/nodes/{node}", code);
    }
    metrics.watchers(2);
    let text = read(&metrics);
    for result in ["done", "replayed", "not-found", "invalid", "conflict", "guard", "unavailable", "failed"] {
        let count = text.get("homeostat_commands_total", &[("command", "pause"), ("result", result)]);
        assert_eq!(count, Some(1.0), "{result}");
    }
    for code in ["0", "7", "200", "404", "65535"] {
        let labels = [("path", "/v1/nodes/{node}"), ("code", code)];
        assert_eq!(text.get("homeostat_http_requests_total", &labels), Some(1.0), "{code}");
    }
    assert_eq!(text.get("homeostat_watchers", &[]), Some(2.0));
    metrics.watchers(0);
    assert_eq!(read(&metrics).get("homeostat_watchers", &[]), Some(0.0));
}

#[test]
fn scrapes_and_counting_at_once() {
    let metrics = crate::metrics();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..50).for_each(|_| assert_eq!(read(&metrics).of("homeostat_nodes").len(), 22)));
        }
        scope.spawn(|| (0..5_000).for_each(|_| metrics.request("/metrics", 200)));
    });
    let text = read(&metrics);
    assert_eq!(text.get("homeostat_http_requests_total", &[("path", "/metrics"), ("code", "200")]), Some(5_000.0));
}

#[test]
fn every_kind_of_notice_is_counted_from_none() {
    // A series that appears with 1 has not increased: the alarm for it would be silent.
    let metrics = crate::metrics();
    let before = read(&metrics);
    let zeros = before.of("homeostat_notices_total");
    assert!(zeros.iter().all(|sample| sample.value == 0.0), "{zeros:?}");
    some_of_everything(&metrics);
    let after = read(&metrics);
    assert_eq!(after.of("homeostat_notices_total").len(), zeros.len(), "every kind was there before it happened");
    assert_eq!(before.get("homeostat_notices_total", &[("kind", "inconsistent")]), Some(0.0));
    assert_eq!(before.get("homeostat_notices_total", &[("kind", "awaits-person")]), Some(0.0));
}
