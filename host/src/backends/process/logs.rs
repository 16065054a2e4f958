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
    let begun_before = from > 0 && after != Some(from);
    // One that was cut is followed from its new beginning.
    let query = OutputQuery { after: query.after.map(|_| after.unwrap_or(0)), ..query };
    let piece = Piece { bytes: &bytes, from: i64::try_from(from).unwrap_or(i64::MAX), begun_before, has_ended: false };
    Ok(piece.page(query))
}

/// A piece of a log.
pub(super) struct Piece<'a> {
    pub bytes: &'a [u8],
    /// Where it begins; below 0 for what was before the log was cut.
    pub from: i64,
    /// Its first line began before it.
    pub begun_before: bool,
    /// Nothing more will be written: what no break ends is a line all the same.
    pub has_ended: bool,
}

impl Piece<'_> {
    pub fn page(&self, query: OutputQuery) -> OutputPage {
        let mut lines = Vec::new();
        let mut end = self.from;
        let place = |at: i64| u64::try_from(at).unwrap_or(0);
        for (number, line) in self.bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let whole = line.strip_suffix(b"\n");
            // Not whole yet: whoever follows gets it when it is; whoever looks once sees it now.
            if whole.is_none() && query.after.is_some() && !self.has_ended {
                break;
            }
            end = end.saturating_add(line.len() as i64);
            let is_told = query.after.is_some_and(|after| place(end) <= after);
            let is_cut = number == 0 && self.begun_before;
            if !is_told && !is_cut {
                lines.push((place(end), text(whole.unwrap_or(line))));
            }
        }
        let mut next = place(end);
        let surplus = lines.len().saturating_sub(query.lines);
        if query.after.is_some() {
            // The oldest first: whoever follows misses none.
            lines.truncate(query.lines);
            next = lines.last().map_or(next, |(end, _)| if surplus > 0 { *end } else { next });
        } else {
            lines.drain(..surplus);
        }
        OutputPage { lines, next }
    }
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
