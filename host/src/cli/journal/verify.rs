//! `homeostat journal verify`.

use std::path::Path;

use ::journal::{ReadError, Segment, Verdict, verify};
use ::step::text::{counted, lasting_between, short, time_of_day};
use serde::Serialize;

use super::super::table::Table;
use super::super::{ExitCode, Failure, Terminal};
use super::{open, unreadable};

#[derive(Serialize)]
struct Verified<'a> {
    schema: &'static str,
    file: String,
    /// Whether nothing is wrong with what is there.
    sound: bool,
    /// Whether an end mark is the last record.
    ends_with_mark: bool,
    /// What is wrong, with the place.
    damage: Option<String>,
    /// The line of the damage, from 1.
    line: Option<u64>,
    /// The whole records before it, and their bytes: what `cut` keeps where it cuts.
    records: u64,
    whole_bytes: u64,
    torn_bytes: u64,
    last_hash: String,
    runs: Vec<Run<'a>>,
}

#[derive(Serialize)]
struct Run<'a> {
    run: &'a str,
    first_record: u64,
    last_record: u64,
    from_ms: u64,
    to_ms: u64,
    decider: &'a str,
    decider_name: &'a str,
    decider_version: &'a str,
    ended: bool,
}

pub(super) fn run(path: &Path, terminal: &Terminal) -> Result<ExitCode, Failure> {
    let mut reader = open(path)?;
    let (verdict, damage) = match verify(&mut reader) {
        Ok(verdict) => (Some(verdict), None),
        Err(ReadError::Damaged { line, damage, .. }) => (None, Some((line, damage.to_string()))),
        Err(error) => return Err(unreadable(path, &error)),
    };
    let torn = reader.torn_bytes();
    let sound = damage.is_none() && torn == 0;
    if terminal.is_json() {
        let torn_words = (torn > 0).then(|| "the last record is torn".to_owned());
        let segments = verdict.as_ref().map_or(&[][..], |verdict| &verdict.segments);
        terminal.print_json(&Verified {
            schema: "homeostat.journal-verify/v1",
            file: path.display().to_string(),
            sound,
            ends_with_mark: verdict.as_ref().is_some_and(Verdict::ends_well),
            damage: damage.as_ref().map(|(_, words)| words.clone()).or(torn_words),
            line: damage.as_ref().map(|(line, _)| *line).or((torn > 0).then(|| reader.chain().next_seq + 1)),
            records: reader.chain().next_seq,
            whole_bytes: reader.whole_bytes(),
            torn_bytes: torn,
            last_hash: reader.chain().last.to_string(),
            runs: segments.iter().map(described).collect(),
        })?;
    } else {
        let kept = format!("{} ({} bytes)", counted(reader.chain().next_seq, "record"), reader.whole_bytes());
        let text = match (&verdict, damage) {
            (Some(verdict), _) => text(path, verdict, &kept, terminal),
            (None, Some((line, damage))) => format!(
                "{}:{line}: damaged: {damage}\nBefore it {kept} are sound. `cut` does not cut here: it only removes a torn record at the \
                 very end.\n",
                path.display()
            ),
            (None, None) => String::new(),
        };
        terminal.print(&text)?;
    }
    Ok(if sound { ExitCode::Ok } else { ExitCode::Failed })
}

fn described(segment: &Segment) -> Run<'_> {
    Run {
        run: &segment.run,
        first_record: segment.first_seq,
        last_record: segment.last_seq,
        from_ms: segment.from_ms,
        to_ms: segment.to_ms,
        decider: &segment.decider.digest,
        decider_name: &segment.decider.name,
        decider_version: &segment.decider.version,
        ended: segment.ended,
    }
}

fn text(path: &Path, verdict: &Verdict, kept: &str, terminal: &Terminal) -> String {
    let mut table = Table::new(&["records", "run", "from", "lasting", "decider", "end"]);
    for segment in &verdict.segments {
        let decider = &segment.decider;
        table.push([
            format!("{}–{}", segment.first_seq, segment.last_seq),
            segment.run.clone(),
            time_of_day(segment.from_ms),
            lasting_between(segment.from_ms, segment.to_ms),
            format!("{} {} ({})", decider.name, decider.version, short(&decider.digest)),
            if segment.ended { "end mark".into() } else { "none".into() },
        ]);
    }
    let table = table.render(&terminal.style());
    let (file, hash) = (path.display(), verdict.last_hash);
    if verdict.torn_bytes > 0 {
        return format!(
            "{file}:{}: torn: the last {} bytes are a record that was begun and not finished\n{table}`cut` keeps {kept}; their last \
             hash is {hash}.\n",
            verdict.records + 1,
            verdict.torn_bytes
        );
    }
    let ending = match verdict.ends_well() {
        true => "It ends with an end mark.",
        false => {
            "It ends without an end mark: the host was killed, still runs, or whole records were cut off the end. The chain alone \
             cannot tell which; the last hash can, if it was noted elsewhere."
        }
    };
    format!("{file}: ok: {kept}, last hash {hash}\n{table}{ending}\n")
}
