//! A stream on which what could not be taken apart as HTTP is refused in words. hyper answers it by itself, before anybody is
//! asked, with a bare status; that answer is always the last of a connection, and it is given words here, on its way out.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limits::Limits;
use crate::problem::{Fault, PROBLEM_JSON};

/// hyper's answer is shorter, in bytes.
const BARE_MAX_BYTES: usize = 256;

/// Gives hyper's own refusals words.
pub(super) struct Worded<S> {
    stream: S,
    /// What each status says.
    details: [(StatusCode, &'static str, String); 3],
    /// What goes out in place of so many bytes, and how much of it has.
    instead: Option<(Vec<u8>, usize, usize)>,
}

impl<S> Worded<S> {
    pub(super) fn new(stream: S, limits: &Limits) -> Self {
        let Limits { head_bytes, head_lines, target_bytes, .. } = limits;
        let details = [
            (StatusCode::BAD_REQUEST, "malformed", "this is no HTTP/1.1 request that can be read".to_owned()),
            (StatusCode::URI_TOO_LONG, "too-large", format!("the request's target has more than {target_bytes} bytes")),
            (
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "too-large",
                format!("the head of the request has more than {head_bytes} bytes or {head_lines} lines"),
            ),
        ];
        Worded { stream, details, instead: None }
    }

    /// The answer in words, for a bare one.
    fn worded(&self, bare: &[u8]) -> Option<Vec<u8>> {
        let status = bare.get(9..12)?;
        let (status, kind, detail) = self.details.iter().find(|(known, ..)| known.as_str().as_bytes() == status)?;
        let body = Fault::new(*status, kind, detail).body();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {PROBLEM_JSON}\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
             x-content-type-options: nosniff\r\nconnection: close\r\n\r\n",
            body.len()
        );
        Some([head.as_bytes(), &body].concat())
    }
}

/// Where, at the end of what is written, a head without a body begins that has nothing but what hyper says by itself. None of our
/// own answers looks like it: a refusal has a type, and no body of ours has bare line breaks before its end.
fn bare_end(bytes: &[u8]) -> Option<usize> {
    if !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let tail = bytes.len().saturating_sub(BARE_MAX_BYTES);
    let start = tail + bytes[tail..].windows(7).rposition(|seven| seven == b"HTTP/1.")?;
    let head = std::str::from_utf8(&bytes[start..bytes.len() - 4]).ok()?;
    let (mut lines, mut is_empty) = (head.split("\r\n").skip(1), false);
    let is_bare = lines.all(|line| {
        is_empty |= line.eq_ignore_ascii_case("content-length: 0");
        let name = line.split(':').next().unwrap_or_default();
        ["content-length", "connection", "date"].iter().any(|known| name.eq_ignore_ascii_case(known))
    });
    (is_bare && is_empty).then_some(start)
}

impl<S: AsyncRead + Unpin> AsyncRead for Worded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Worded<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.instead.is_none() {
            match bare_end(bytes) {
                Some(0) => {
                    let Some(words) = this.worded(bytes) else {
                        return Pin::new(&mut this.stream).poll_write(context, bytes);
                    };
                    this.instead = Some((words, 0, bytes.len()));
                }
                // First what is before it.
                Some(start) => return Pin::new(&mut this.stream).poll_write(context, &bytes[..start]),
                None => return Pin::new(&mut this.stream).poll_write(context, bytes),
            }
        }
        while let Some((words, sent, stands_for)) = &mut this.instead {
            if *sent == words.len() {
                let stands_for = *stands_for;
                this.instead = None;
                return Poll::Ready(Ok(stands_for));
            }
            match ready!(Pin::new(&mut this.stream).poll_write(context, &words[*sent..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                more => *sent += more,
            }
        }
        Poll::Ready(Ok(0))
    }

    /// Large bodies are shared between connections, and not copied for each.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let last = parts.iter().rposition(|part| !part.is_empty());
        let bare = last.and_then(|last| Some((last, bare_end(&parts[last])?)));
        match bare {
            None if self.instead.is_none() => Pin::new(&mut self.stream).poll_write_vectored(context, parts),
            Some((last, start)) if start > 0 || parts[..last].iter().any(|part| !part.is_empty()) => {
                let mut before = parts[..last].to_vec();
                before.push(IoSlice::new(&parts[last][..start]));
                Pin::new(&mut self.stream).poll_write_vectored(context, &before)
            }
            _ => self.poll_write(context, last.map_or(&[], |last| &parts[last])),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const BARE: &str = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\ndate: Mon, 30 Nov 2026 09:00:00 GMT\r\n\r\n";

    #[test]
    fn only_a_bare_head_at_the_end_is_one() {
        let before = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(bare_end(BARE.as_bytes()), Some(0));
        assert_eq!(bare_end(format!("{before}{BARE}").as_bytes()), Some(before.len()));
        for other in [
            "",
            "\r\n\r\n",
            before,
            &BARE[..BARE.len() - 1],
            &format!("{BARE}x"),
            "HTTP/1.1 304 Not Modified\r\netag: x\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\ncontent-length: 9\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n",
        ] {
            assert_eq!(bare_end(other.as_bytes()), None, "{other:?}");
        }
    }

    /// However little the other end takes at once.
    #[tokio::test]
    async fn it_is_given_words_once_and_nothing_else_changes() {
        let before = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        for (room, is_vectored) in [1, 7, 64, 4_096].into_iter().flat_map(|room| [(room, false), (room, true)]) {
            let (ours, mut theirs) = tokio::io::duplex(room);
            let read = tokio::spawn(async move {
                let mut text = String::new();
                theirs.read_to_string(&mut text).await.unwrap();
                text
            });
            let mut worded = Worded::new(ours, &Limits::default());
            match is_vectored {
                false => worded.write_all(format!("{before}{BARE}").as_bytes()).await.unwrap(),
                true => {
                    let parts = [before.as_bytes(), &[], BARE.as_bytes(), &[]];
                    let mut sent = 0;
                    while sent < before.len() + BARE.len() {
                        let mut skip = sent;
                        let left = parts.map(|part| {
                            let cut = skip.min(part.len());
                            skip -= cut;
                            IoSlice::new(&part[cut..])
                        });
                        sent += worded.write_vectored(&left).await.unwrap();
                    }
                }
            }
            worded.shutdown().await.unwrap();
            drop(worded);
            let text = read.await.unwrap();
            let rest = text.strip_prefix(before).unwrap();
            let (head, body) = rest.split_once("\r\n\r\n").unwrap();
            assert!(
                head.starts_with("HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\n"),
                "{text}"
            );
            assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{text}");
            let problem: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!((&problem["type"], &problem["status"]), (&"urn:homeostat:malformed".into(), &400.into()));
        }
    }
}
