//! Placeholders in the texts of a fleet file: `{endpoint}` and the like.
//!
//! A placeholder is a lower-case word in braces; every other use of braces (JSON, shell, `${HOME}`) stays as it is. A
//! word that is not known is refused, so that a typing error is found before anything starts; `{{word}}` stands for a
//! literal `{word}`.

/// What the placeholders stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// `{endpoint}`: `127.0.0.1:20001`.
    pub endpoint: String,
    /// `{host}`: the endpoint's address.
    pub host: String,
    /// `{port}`: the endpoint's port.
    pub port: String,
    /// `{run}`: the run's id.
    pub run: String,
    /// `{node}`: the slot's name.
    pub node: String,
    /// `{attempt}`: the attempt's number.
    pub attempt: String,
    /// `{dir}`: the directory that the command runs in.
    pub dir: String,
    /// `{state}`: a directory that all attempts of the run share.
    pub state: String,
    /// `{self}`: the host's own program.
    pub own: String,
}

/// A placeholder that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no placeholder {{{word}}}; known: {{endpoint}} {{host}} {{port}} {{run}} {{node}} {{attempt}} {{dir}} {{state}} {{self}}; write {{{{{word}}}}} for the text itself"
)]
pub struct UnknownPlaceholder {
    /// The word between the braces.
    pub word: String,
}

impl Values {
    fn of(&self, word: &str) -> Option<&str> {
        Some(match word {
            "endpoint" => &self.endpoint,
            "host" => &self.host,
            "port" => &self.port,
            "run" => &self.run,
            "node" => &self.node,
            "attempt" => &self.attempt,
            "dir" => &self.dir,
            "state" => &self.state,
            "self" => &self.own,
            _ => return None,
        })
    }

    /// Fills in the placeholders of a text.
    pub fn expand(&self, text: &str) -> Result<String, UnknownPlaceholder> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(brace) = rest.find('{') {
            out.push_str(&rest[..brace]);
            rest = &rest[brace..];
            if let Some((word, after)) =
                rest.strip_prefix('{').and_then(braced).filter(|(_, after)| after.starts_with('}'))
            {
                out.push_str(&format!("{{{word}}}"));
                rest = &after[1..];
            } else if let Some((word, after)) = braced(rest) {
                out.push_str(self.of(word).ok_or_else(|| UnknownPlaceholder { word: word.into() })?);
                rest = after;
            } else {
                out.push('{');
                rest = &rest[1..];
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    /// Fills in the placeholders of a regular expression, escaped. Braces mean much in an expression, so only known
    /// words count and there is no escape.
    pub fn expand_regex(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(brace) = rest.find('{') {
            out.push_str(&rest[..brace]);
            rest = &rest[brace..];
            match braced(rest).and_then(|(word, after)| Some((self.of(word)?, after))) {
                Some((value, after)) => {
                    out.push_str(&regex::escape(value));
                    rest = after;
                }
                None => {
                    out.push('{');
                    rest = &rest[1..];
                }
            }
        }
        out.push_str(rest);
        out
    }
}

/// `{word}rest` as `(word, rest)`.
fn braced(text: &str) -> Option<(&str, &str)> {
    let (word, after) = text.strip_prefix('{')?.split_once('}')?;
    let mut bytes = word.bytes();
    let ok = bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    ok.then_some((word, after))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn values() -> Values {
        Values { endpoint: "127.0.0.1:1".into(), node: "a-0".into(), ..Values::default() }
    }

    #[test]
    fn words_are_filled_in_and_other_braces_stay() {
        for (text, expected) in [
            ("http://{endpoint}/x", "http://127.0.0.1:1/x"),
            ("{node}{node}", "a-0a-0"),
            ("{ \"a\": {\"b\": 1}}", "{ \"a\": {\"b\": 1}}"),
            ("${HOME} {} {1,2} {{", "${HOME} {} {1,2} {{"),
            ("awk '{{print}}'", "awk '{print}'"),
            ("{{node}} {node}", "{node} a-0"),
            ("ä{node}ö{", "äa-0ö{"),
        ] {
            assert_eq!(values().expand(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn an_unknown_word_is_refused_with_its_name() {
        let error = values().expand("--listen {enpoint}").unwrap_err();
        assert_eq!(error.word, "enpoint");
        assert!(error.to_string().contains("write {{enpoint}} for the text itself"), "{error}");
    }

    #[test]
    fn expressions_keep_their_braces() {
        let values = values();
        assert_eq!(
            values.expand_regex(r"^\p{L}{2,3}\x{41} {endpoint} {word}$"),
            r"^\p{L}{2,3}\x{41} 127\.0\.0\.1:1 {word}$"
        );
    }
}
