use api::control::Refusal;
use api::wire::{
    Check, Diagnosis, Explanation, Export, Fact, History, HistoryQuery, LogLine, Logs, LogsQuery, NodeDetail, RuleRow,
    TemplateView, Verdict,
};

use super::now_ms;
use super::world::World;

pub fn node(world: &World, name: &str) -> Result<NodeDetail, Refusal> {
    let node = world.status.nodes[world.at(name)?].clone();
    let attempt = node.attempt.unwrap_or_default();
    let recent: Vec<_> = world.history.iter().filter(|item| item.node.as_deref() == Some(name)).cloned().collect();
    Ok(NodeDetail {
        schema: "homeostat.node/v1".into(),
        now_ms: now_ms(),
        provider: Some("process".into()),
        lease: Some(format!("proc-{}", 5_000 + attempt)),
        session: Some(format!("session-{attempt}")),
        key: Some(format!("{}/{name}/{attempt}", world.status.run)),
        stage_deadline_ms: node.until_ms,
        restart_ms: node.until_ms.filter(|_| node.stage == "failed"),
        template: Some(TemplateView {
            provider: "process".into(),
            role: node.group.clone(),
            command: ["/usr/bin/serve", "--port", "{endpoint}"].map(str::to_owned).into(),
            env: vec!["DATABASE_PASSWORD".into()],
            join: "GET http://{endpoint}/ every 500 ms".into(),
            ..TemplateView::default()
        }),
        recent: recent.iter().skip(recent.len().saturating_sub(20)).cloned().collect(),
        node,
        ..NodeDetail::default()
    })
}

pub fn explain(world: &World, name: &str) -> Result<Explanation, Refusal> {
    let node = &world.status.nodes[world.at(name)?];
    let decided = world.decisions.iter().rev().find(|decided| decided.node == name);
    let fact = |name: &str, value: &str, matters| Fact { name: name.into(), value: value.into(), matters };
    let failed = node.stage == "failed";
    Ok(Explanation {
        schema: "homeostat.explanation/v1".into(),
        node: name.to_owned(),
        attempt: node.attempt,
        now_ms: now_ms(),
        summary: match node.ready {
            true => format!("{name} is ready; it waits for nothing."),
            false => format!("{name} is {}: {}.", node.stage, node.waits_for),
        },
        rule: decided.map(|decided| RuleRow {
            id: decided.rule.clone(),
            reason: decided.reason.clone(),
            when: vec!["intent = active".into(), format!("stage = {}", node.stage)],
        }),
        decided_ms: decided.map(|decided| decided.at_ms),
        verb: decided.map(|decided| decided.verb.clone()),
        facts: vec![
            fact("intent", "active", true),
            fact("stage", &node.stage, true),
            fact("pending", "none", false),
            fact("failures", &node.failures.to_string(), false),
        ],
        ends: node.waits_for.clone(),
        until_ms: node.until_ms,
        next_step: if failed { format!("look at `homeostat logs {name}`") } else { String::new() },
    })
}

pub fn history(world: &World, query: &HistoryQuery) -> Result<History, Refusal> {
    if let Some(name) = &query.node {
        world.at(name)?;
    }
    let fits: Vec<_> = world
        .history
        .iter()
        .filter(|item| query.node.is_none() || item.node == query.node)
        .filter(|item| query.before.is_none_or(|before| item.seq < before))
        .collect();
    let skipped = fits.len().saturating_sub(query.limit.unwrap_or(100));
    Ok(History {
        schema: "homeostat.history/v1".into(),
        node: query.node.clone(),
        items: fits.into_iter().skip(skipped).cloned().collect(),
        more: skipped > 0,
        first_kept_seq: 1,
    })
}

pub fn logs(world: &World, query: &LogsQuery) -> Result<Logs, Refusal> {
    let node = &world.status.nodes[world.at(&query.node)?];
    let written = (now_ms() - world.status.started_ms) / 1_000;
    let first = query.after.map_or(0, |after| after + 1);
    let all: Vec<LogLine> = (first..written)
        .map(|at| LogLine {
            at,
            at_ms: Some(world.status.started_ms + at * 1_000),
            text: format!("{}: still here, line {at}", node.node),
        })
        .collect();
    let skipped = all.len().saturating_sub(query.lines.unwrap_or(200));
    Ok(Logs {
        schema: "homeostat.logs/v1".into(),
        node: node.node.clone(),
        attempt: node.attempt,
        is_gone: query.previous == Some(true),
        next: all.last().map_or(query.after.unwrap_or_default(), |line| line.at),
        lines: all.into_iter().skip(skipped).collect(),
    })
}

pub fn export(world: &World) -> Export {
    Export {
        schema: "homeostat.snapshot/v1".into(),
        run: world.status.run.clone(),
        at_ms: now_ms(),
        next_seq: world.history.len() as u64 + 1,
        hash: "00".repeat(32),
        declared: None,
        checkpoint: serde_json::json!({ "generation": world.status.generation }),
        deciders: None,
    }
}

pub fn diagnosis() -> Diagnosis {
    let check = |name: &str, verdict, text: &str, remedy: &str| Check {
        name: name.into(),
        verdict,
        text: text.into(),
        remedy: remedy.into(),
    };
    Diagnosis {
        schema: "homeostat.diagnosis/v1".into(),
        checks: vec![
            check("state directory", Verdict::Ok, "mode 0700, owner root", ""),
            check("store", Verdict::Ok, "a fake: nothing is kept", ""),
            check("decider", Verdict::Ok, "built-in 0.1.0", ""),
            check(
                "backend process",
                Verdict::Warning,
                "1 resource is being removed for 30 s",
                "see `homeostat status`",
            ),
            check("clock", Verdict::Ok, "runs forward", ""),
        ],
    }
}
