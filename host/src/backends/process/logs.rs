//! The end of a node's log, for people: read anew for each question, so that it costs nothing while nobody asks.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use super::Inner;
use super::calls::blocking;
use super::lease::{OUTPUT, fault};
use super::output::LINE_MAX_BYTES;
use crate::backends::{ExternalKey, Fault, LeaseId, OutputPage, OutputQuery};

/// How far back from the end is looked at most, in bytes.
const BACK_BYTES: u64 = 4 << 20;

/// Lines of the log at `path`. Their places are the bytes after each; a log that was cut begins anew.
pub(super) fn page(path: &Path, query: OutputQuery) -> io::Result<OutputPage> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        // Nothing was written yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(OutputPage::default()),
        Err(error) => return Err(error),
    };
    let size = file.metadata()?.len();
    let after = query.after.filter(|after| *after <= size);
    let from = after.unwrap_or(0).max(size.saturating_sub(BACK_BYTES));
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(BACK_BYTES).read_to_end(&mut bytes)?;
    let mut lines = Vec::new();
    let mut at = from;
    for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        at += line.len() as u64;
        let begun_before = number == 0 && from > 0 && after != Some(from);
        let Some(line) = line.strip_suffix(b"\n") else {
            // Not whole yet: whoever follows gets it when it is; whoever looks once sees it now.
            if query.after.is_none() {
                lines.push((at, text(line)));
            } else {
                at -= line.len() as u64;
            }
            break;
        };
        if !begun_before {
            lines.push((at, text(line)));
        }
    }
    let surplus = lines.len().saturating_sub(query.lines);
    if query.after.is_some() {
        // The oldest first: whoever follows misses none.
        lines.truncate(query.lines);
        at = lines.last().map_or(at, |(end, _)| if surplus > 0 { *end } else { at });
    } else {
        lines.drain(..surplus);
    }
    Ok(OutputPage { lines, next: at })
}

fn text(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let cut = line.len().min(LINE_MAX_BYTES);
    String::from_utf8_lossy(&line[..cut]).into_owned()
}

impl Inner {
    pub(super) async fn output(
        self: Arc<Self>,
        key: ExternalKey,
        lease: LeaseId,
        query: OutputQuery,
    ) -> Result<OutputPage, Fault> {
        let name = self.name(&key, &lease)?;
        blocking(move || {
            // Only what is labelled with this key is this node's.
            self.marker_or_gone(&name, &key)?;
            let path = self.leases.join(&name).join(OUTPUT);
            page(&path, query).map_err(|error| fault("read", &path, &error))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn lines(path: &Path, after: Option<u64>, lines: usize) -> (Vec<String>, u64) {
        let page = page(path, OutputQuery { after, lines }).unwrap();
        (page.lines.into_iter().map(|(_, text)| text).collect(), page.next)
    }

    #[test]
    fn the_last_lines_and_then_what_follows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("output.log");
        assert_eq!(lines(&path, None, 10), (vec![], 0));
        std::fs::write(&path, "a\nb\r\nc\nhalf").unwrap();
        assert_eq!(lines(&path, None, 2), (vec!["c".into(), "half".into()], 11));
        let (got, next) = lines(&path, Some(0), 2);
        assert_eq!((got, next), (vec!["a".to_owned(), "b".into()], 5));
        assert_eq!(lines(&path, Some(next), 2), (vec!["c".into()], 7), "half a line is not told to whoever follows");
        std::fs::write(&path, "new\n").unwrap();
        assert_eq!(lines(&path, Some(7), 2), (vec!["new".into()], 4), "it was cut");
        std::fs::write(&path, [0xff, b'\n']).unwrap();
        assert_eq!(lines(&path, None, 2).0, vec!["\u{fffd}".to_owned()]);
    }
}
