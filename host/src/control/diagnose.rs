//! `doctor`: the state directory, the store, the decider, the backends, the clock, the fleet; each with a verdict.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use api::wire::{Check, Verdict};
use rustix::fs::statvfs;
use step::text::{counted, lasting};

use super::Desk;
use crate::clock::Clock;

/// Free space below which a warning is given, in bytes.
const LITTLE_SPACE_BYTES: u64 = 1 << 30;
/// A loop that takes longer than this to answer is in trouble.
const SLOW: Duration = Duration::from_secs(1);
/// A backend that takes longer than this to be listed is one.
const LISTING_LIMIT: Duration = Duration::from_secs(10);

pub(super) async fn checks(desk: &Desk) -> Vec<Check> {
    let mut checks = vec![state_dir(&desk.dir), loop_turns(desk).await, store(desk).await, decider(desk).await];
    let run = desk.feed.status().run.clone();
    for (name, backend) in desk.backends.iter() {
        let began = Instant::now();
        let name = format!("backend {name}");
        checks.push(match tokio::time::timeout(LISTING_LIMIT, backend.list(&run)).await {
            Ok(Ok(listing)) if listing.complete => {
                let text = format!(
                    "{}, listed in {} ms",
                    counted(listing.resources.len() as u64, "resource"),
                    began.elapsed().as_millis()
                );
                check(name, Verdict::Ok, text, "")
            }
            Ok(Ok(_)) => check(
                name,
                Verdict::Warning,
                "its listing is not complete: nothing is concluded from what it lacks".into(),
                "look at the provider's own tools",
            ),
            Ok(Err(fault)) => {
                check(name, Verdict::Bad, format!("it cannot be listed: {fault}"), "look at the provider")
            }
            Err(_) => check(
                name,
                Verdict::Bad,
                format!("no listing within {} s", LISTING_LIMIT.as_secs()),
                "look at the provider; the nodes of other backends are not delayed by it",
            ),
        });
    }
    checks.push(clock(desk));
    checks.push(fleet_file(desk));
    checks.push(fleet(desk));
    checks
}

fn check(name: impl Into<String>, verdict: Verdict, text: String, remedy: &str) -> Check {
    Check { name: name.into(), verdict, text, remedy: remedy.into() }
}

fn state_dir(dir: &Path) -> Check {
    let name = "state directory";
    let found = match std::fs::metadata(dir) {
        Ok(found) => found,
        Err(error) => {
            let text = format!("{}: {error}", dir.display());
            return check(
                name,
                Verdict::Bad,
                text,
                "the daemon goes on with what it has in memory: find out who removed it",
            );
        }
    };
    if found.mode() & 0o077 != 0 {
        let text = format!("{} has the mode {:o}: others can look into it", dir.display(), found.mode() & 0o777);
        return check(name, Verdict::Bad, text, "chmod 700, and ask who could have read the key");
    }
    match statvfs(dir) {
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let text = format!("{}: {} MiB free", dir.display(), free >> 20);
            if free < LITTLE_SPACE_BYTES {
                check(name, Verdict::Warning, text, "make room: on a full disk the daemon stops (the nodes go on)")
            } else {
                check(name, Verdict::Ok, text, "")
            }
        }
        Err(error) => check(name, Verdict::Warning, format!("{}: {error}", dir.display()), "look at the file system"),
    }
}

async fn loop_turns(desk: &Desk) -> Check {
    let began = Instant::now();
    let name = "loop";
    match tokio::time::timeout(Duration::from_secs(5), desk.host.look(|driver| driver.stats())).await {
        Ok(Ok(stats)) => {
            let took = began.elapsed();
            let text = format!("{}, answers in {} ms", counted(stats.passes, "pass"), took.as_millis());
            let verdict = if took > SLOW { Verdict::Warning } else { Verdict::Ok };
            check(name, verdict, text, "")
        }
        Ok(Err(error)) => check(name, Verdict::Bad, error.to_string(), "start the daemon again; the nodes go on"),
        Err(_) => check(name, Verdict::Bad, "no answer within 5 s".into(), "start the daemon again; the nodes go on"),
    }
}

async fn store(desk: &Desk) -> Check {
    let read = desk.read(|reader| {
        let (first, head) = (reader.first().next_seq, reader.head().next_seq);
        // The newest part, checked: all of it is what `homeostat journal verify` does.
        let from = head.saturating_sub(1_000).max(first);
        for line in ::store::records(reader, from)? {
            line?;
        }
        Ok((first, head))
    });
    match read.await {
        Ok((first, head)) => {
            check("store", Verdict::Ok, format!("records {first} to {head}, the last 1,000 are sound"), "")
        }
        Err(error) => check(
            "store",
            Verdict::Bad,
            error.to_string(),
            "keep the nodes, stop the daemon, and restore the state from a copy (docs/operations.md)",
        ),
    }
}

/// What a restart, or a rollback, would not find.
async fn missing(desk: &Desk) -> Option<(Verdict, String)> {
    let registry = desk.host.registry()?.clone();
    let document = desk.host.deciders().await.ok()?.document;
    let looked = tokio::task::spawn_blocking(move || {
        // What never was a component is nowhere.
        let kept = |digest: &String| document.entry(digest).is_some_and(|entry| entry.size_bytes > 0);
        let mut digests = document.carried().into_iter().filter(kept);
        digests.find_map(|digest| {
            let error = registry.component(&digest).err()?;
            Some(match digest == document.active {
                true => (Verdict::Bad, format!("a restart would not find it: {error}")),
                false => (
                    Verdict::Warning,
                    format!("a rollback, or a pin, would not find {}: {error}", document.title(&digest)),
                ),
            })
        })
    });
    looked.await.ok()?
}

async fn decider(desk: &Desk) -> Check {
    let missing = missing(desk).await;
    let status = desk.feed.status();
    let decider = &status.decider;
    let name = format!("{} {} ({})", decider.name, decider.version, step::text::short(&decider.digest));
    match &decider.failure {
        None => match missing {
            None => check("decider", Verdict::Ok, name, ""),
            Some((verdict, why)) => check(
                "decider",
                verdict,
                format!("{name}: {why}"),
                "`homeostat decider swap FILE` with the same component puts it there again",
            ),
        },
        Some(failure) => check(
            "decider",
            Verdict::Bad,
            format!("{name} fails: {failure}"),
            "`homeostat decider rollback`, or `decider swap` to another one; the nodes it fails for are held as they are",
        ),
    }
}

fn clock(desk: &Desk) -> Check {
    // The loop's clock never goes back; the wall clock may.
    let (ours, wall) = (desk.feed.status().now_ms, Clock::system().now_ms());
    match ours.checked_sub(wall).filter(|ahead| *ahead > 5_000) {
        Some(ahead) => check(
            "clock",
            Verdict::Warning,
            format!("the wall clock is {} behind what was recorded before", lasting(ahead)),
            "set the clock; until it has caught up, time goes on from the recorded instant",
        ),
        None => check("clock", Verdict::Ok, step::text::time_of_day(wall), ""),
    }
}

fn fleet_file(desk: &Desk) -> Check {
    let status = desk.feed.status();
    match &status.refused_file {
        None => check("fleet file", Verdict::Ok, "taken over".into(), ""),
        Some(refused) => check(
            "fleet file",
            Verdict::Warning,
            format!("refused, what was taken over before stays in force: {}", refused.reason),
            &format!("mend {}, which is read again when it changes; `homeostat validate` checks it", refused.file),
        ),
    }
}

fn fleet(desk: &Desk) -> Check {
    let status = desk.feed.status();
    if !status.pauses.is_empty() {
        let words: Vec<&str> = status.pauses.iter().map(|pause| pause.reason.as_str()).collect();
        return check("fleet", Verdict::Warning, words.join("; "), &status.pauses[0].resume);
    }
    if !status.orphans.is_empty() {
        let text = counted(status.orphans.len() as u64, "orphan");
        return check(
            "fleet",
            Verdict::Warning,
            text,
            "`homeostat orphans`; then `homeostat adopt` or `homeostat destroy --orphan`",
        );
    }
    // One that is ready and has an error was not shown by its provider when the daemon started.
    let doubtful: Vec<_> = status.nodes.iter().filter(|node| node.ready && node.error.is_some()).collect();
    if let Some(first) = doubtful.first() {
        let error = first.error.as_deref().unwrap_or_default();
        let text = format!("{} of the ready nodes may be gone: {}: {error}", doubtful.len(), first.node);
        return check("fleet", Verdict::Warning, text, &format!("`homeostat kill {}` replaces it", first.node));
    }
    match status.converged {
        true => check("fleet", Verdict::Ok, format!("converged, generation {}", status.generation), ""),
        false => check("fleet", Verdict::Warning, status.reason.clone(), "`homeostat status`"),
    }
}
