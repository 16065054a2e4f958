//! Server-sent events, byte for byte as they arrive.

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// Its kind.
    pub event: String,
    /// What it carries.
    pub body: String,
    /// Its id, if it has one.
    pub id: Option<String>,
}

/// An event is not longer; a list of 10,000 nodes has a few million bytes.
const MAX_EVENT: usize = 256 << 20;

/// Cuts a stream into events. Half an event is none: it is kept until the rest comes, and dropped with the connection.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    last_was_cr: bool,
    message: Message,
    has_body: bool,
}

impl Parser {
    /// The events that these bytes complete; an error when one is too long.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Message>, String> {
        let mut messages = Vec::new();
        for &byte in bytes {
            match byte {
                b'\n' if std::mem::take(&mut self.last_was_cr) => {}
                b'\n' | b'\r' => {
                    self.last_was_cr = byte == b'\r';
                    let line = std::mem::take(&mut self.line);
                    messages.extend(self.take(&String::from_utf8_lossy(&line)));
                }
                _ => {
                    self.last_was_cr = false;
                    self.line.push(byte);
                    if self.line.len() + self.message.body.len() > MAX_EVENT {
                        return Err(format!("an event is longer than {MAX_EVENT} bytes"));
                    }
                }
            }
        }
        Ok(messages)
    }

    fn take(&mut self, line: &str) -> Option<Message> {
        if line.is_empty() {
            let message = std::mem::take(&mut self.message);
            return std::mem::take(&mut self.has_body).then_some(message);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.message.event = value.to_owned(),
            "data" => {
                if std::mem::replace(&mut self.has_body, true) {
                    self.message.body.push('\n');
                }
                self.message.body.push_str(value);
            }
            "id" => self.message.id = Some(value.to_owned()),
            // A comment is a sign of life; other fields are not ours.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const TEXT: &str = ": hello\n\nevent: change\nid: 7-1\ndata: {\"a\":\ndata: 1}\n\ndata:x\r\n\r\nevent: end\n\nevent: half\ndata: y\n";

    #[test]
    fn events_are_the_same_however_they_are_cut() {
        let whole = Parser::default().push(TEXT.as_bytes()).unwrap();
        assert_eq!(whole.len(), 2, "{whole:?}");
        assert_eq!((whole[0].event.as_str(), whole[0].body.as_str()), ("change", "{\"a\":\n1}"));
        assert_eq!(whole[0].id.as_deref(), Some("7-1"));
        assert_eq!(whole[1].body, "x");
        for size in 1..TEXT.len() {
            let mut parser = Parser::default();
            let mut found = Vec::new();
            for piece in TEXT.as_bytes().chunks(size) {
                found.extend(parser.push(piece).unwrap());
            }
            assert_eq!(found, whole, "{size}");
        }
    }
}
