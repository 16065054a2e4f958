//! What a boot command writes: a file that the command appends to by itself, so that it outlives the host. Read line by
//! line as it grows, kept bounded.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Longest line that is kept, in bytes; the rest of a longer one is dropped.
pub const LINE_MAX_BYTES: usize = 4096;
/// How much of a log that is cut is kept beside it, in bytes.
const KEPT_BYTES: u64 = 1 << 20;
const CHUNK_BYTES: usize = 64 << 10;

/// Reads a log from where it was.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    file: Option<File>,
    position: u64,
    line: Vec<u8>,
    /// The line being read lacks its start: it is not shown to anybody.
    headless: bool,
    /// The last line that was not blank.
    pub last: Option<String>,
}

impl Tail {
    /// From the start, but at most `back` bytes before the end.
    pub fn new(path: PathBuf, back: u64) -> Self {
        let size = fs::metadata(&path).map(|meta| meta.len()).unwrap_or(0);
        Tail { path, file: None, position: size.saturating_sub(back), line: Vec::new(), headless: false, last: None }
    }

    /// Reads one piece of what is new; 0 when there is nothing. Whole lines go to `each`.
    pub fn pump(&mut self, each: &mut dyn FnMut(&str)) -> io::Result<usize> {
        if self.file.is_none() {
            match File::open(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
                Err(error) => return Err(error),
            }
        }
        let Some(file) = &mut self.file else { return Ok(0) };
        if file.metadata()?.len() < self.position {
            // Somebody cut it.
            self.position = 0;
        }
        file.seek(SeekFrom::Start(self.position))?;
        let mut chunk = [0; CHUNK_BYTES];
        let count = file.read(&mut chunk)?;
        self.position += count as u64;
        let mut rest = &chunk[..count];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.append(&rest[..end]);
            self.finish(each);
            rest = &rest[end + 1..];
        }
        self.append(rest);
        Ok(count)
    }

    /// What was written last counts as a line, although nothing ended it.
    pub fn flush(&mut self, each: &mut dyn FnMut(&str)) {
        if !self.line.is_empty() {
            self.finish(each);
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        let room = LINE_MAX_BYTES.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn finish(&mut self, each: &mut dyn FnMut(&str)) {
        if !std::mem::take(&mut self.headless) {
            let text = String::from_utf8_lossy(&self.line);
            let text = text.strip_suffix('\r').unwrap_or(&text);
            each(text);
            if !text.trim().is_empty() {
                let last = self.last.get_or_insert_default();
                last.clear();
                last.push_str(text);
            }
        }
        self.line.clear();
    }

    /// Passes over what was written too fast to be read, all but the end, once it is more than `most` bytes.
    pub fn skip_backlog(&mut self, most: u64) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let size = file.metadata()?.len();
        if size.saturating_sub(self.position) > most {
            self.position = size.saturating_sub(KEPT_BYTES.min(most));
            self.line.clear();
            self.headless = true;
        }
        Ok(())
    }

    /// Cuts a log that is larger than `limit` bytes and read to its end; the end is kept beside it as `output.log.1`.
    /// What is written in the very moment of the cut is lost. One that grows faster than it can be read is cut once it is
    /// larger than `most`, or it would fill the disk; what was not read of it is lost.
    pub fn rotate(&mut self, limit: u64, most: u64) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let size = file.metadata()?.len();
        if size <= limit || (size != self.position && size <= most) {
            return Ok(());
        }
        file.seek(SeekFrom::Start(size.saturating_sub(KEPT_BYTES)))?;
        let mut kept = Vec::new();
        file.take(KEPT_BYTES).read_to_end(&mut kept)?;
        fs::write(kept_path(&self.path), kept)?;
        let log = OpenOptions::new().write(true).open(&self.path)?;
        let end = log.metadata()?.len();
        if end == self.position || end > most {
            // The command appends, so what it writes next starts the file anew.
            log.set_len(0)?;
            if end != self.position {
                self.line.clear();
                self.headless = true;
            }
            self.position = 0;
        }
        Ok(())
    }
}

/// Where the end of a log that was cut is kept.
pub(super) fn kept_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// A line as people may see it: no escape sequences, no control characters.
pub fn printable(line: &str) -> String {
    let plain = console::strip_ansi_codes(line);
    plain.chars().map(|char| if char == '\t' { ' ' } else { char }).filter(|char| !char.is_control()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use super::*;

    fn all(tail: &mut Tail) -> Vec<String> {
        let mut lines = Vec::new();
        while tail.pump(&mut |line| lines.push(line.to_owned())).unwrap() > 0 {}
        lines
    }

    #[test]
    fn lines_are_whole_bounded_and_survive_a_cut() {
        let dir = std::env::temp_dir().join(format!("homeostat-output-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("output.log");
        let mut tail = Tail::new(path.clone(), u64::MAX);
        assert!(all(&mut tail).is_empty(), "no file yet");
        let mut log = OpenOptions::new().append(true).create(true).open(&path).unwrap();
        log.write_all(b"one\r\ntw").unwrap();
        assert_eq!(all(&mut tail), ["one"]);
        log.write_all(b"o\n\n\xff\xfe bytes\n").unwrap();
        assert_eq!(all(&mut tail), ["two", "", "\u{fffd}\u{fffd} bytes"]);
        log.write_all(&vec![b'x'; 300_000]).unwrap();
        log.write_all(b"\nafter\nhalf").unwrap();
        let lines = all(&mut tail);
        assert_eq!(lines.iter().map(String::len).collect::<Vec<_>>(), [LINE_MAX_BYTES, 5]);
        tail.rotate(1_000_000, 8_000_000).unwrap();
        assert!(fs::metadata(&path).unwrap().len() > 300_000, "below the limit it stays");
        tail.rotate(100_000, 800_000).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 0);
        assert!(fs::read(dir.join("output.log.1")).unwrap().ends_with(b"\nafter\nhalf"));
        log.write_all(b" done\nnew").unwrap();
        assert_eq!(all(&mut tail), ["half done"]);
        tail.flush(&mut |line| assert_eq!(line, "new"));
        log.write_all(&b"flood\n".repeat(500_000)).unwrap();
        log.write_all(b"READY\n").unwrap();
        tail.rotate(100_000, 8_000_000).unwrap();
        assert!(fs::metadata(&path).unwrap().len() > 3_000_000, "what is not read is not cut");
        tail.skip_backlog(2_000_000).unwrap();
        let lines = all(&mut tail);
        assert!(lines.len() < 200_000 && lines.iter().all(|line| line == "flood" || line == "READY"));
        assert_eq!(lines.last().map(String::as_str), Some("READY"));
        log.write_all(b"new\n").unwrap();
        assert_eq!(all(&mut tail), ["new"]);
        assert_eq!(tail.last.as_deref(), Some("new"));
        log.write_all(&b"flood\n".repeat(500_000)).unwrap();
        tail.pump(&mut |_| ()).unwrap();
        tail.rotate(100_000, 2_000_000).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 0, "too much of it to be read");
        log.write_all(b"half a line\nwhole\n").unwrap();
        assert_eq!(all(&mut tail), ["whole"]);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_people_see_moves_no_cursor() {
        assert_eq!(printable("\u{1b}[31mred\u{1b}[0m\tand\u{7} bell\u{1b}[2J"), "red and bell");
    }
}
