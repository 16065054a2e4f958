//! Times, labels, verdicts.

use api::wire::{Diagnosis, Verdict};
use console::Style;
use step::text::{escape, lasting, wrap};

/// How things are written: with or without colour, how wide, and which instant is now.
#[derive(Clone, Debug)]
pub struct Pen {
    /// A style without anything.
    pub style: Style,
    /// How wide lines may be; none when as long as they are.
    pub width: Option<usize>,
    /// Now, by the daemon's clock.
    pub now_ms: u64,
}

impl Pen {
    /// Without colours, as long as lines are.
    pub fn plain(now_ms: u64) -> Self {
        Pen { style: Style::new().force_styling(false), width: None, now_ms }
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.style.clone().bold().apply_to(text).to_string()
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.style.clone().dim().apply_to(text).to_string()
    }

    pub(crate) fn red(&self, text: &str) -> String {
        self.style.clone().red().apply_to(text).to_string()
    }

    pub(crate) fn yellow(&self, text: &str) -> String {
        self.style.clone().yellow().apply_to(text).to_string()
    }

    pub(crate) fn green(&self, text: &str) -> String {
        self.style.clone().green().apply_to(text).to_string()
    }

    /// A label and a text beside it, wrapped where lines have an end. Nothing where the text is empty.
    pub(crate) fn field(&self, out: &mut String, label: &str, text: &str) {
        const LABEL: usize = 12;
        if text.is_empty() {
            return;
        }
        let lines = match self.width {
            Some(width) => wrap(text, width.saturating_sub(LABEL + 2).max(20)),
            None => vec![escape(text)],
        };
        for (at, line) in lines.iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            out.push_str(&format!("  {}  {line}\n", self.dim(&format!("{label:LABEL$}")).as_str()));
        }
    }
}

/// When something is due: `in 12s`, `now`, `3s overdue`.
pub fn until(at_ms: u64, now_ms: u64) -> String {
    match at_ms.checked_sub(now_ms) {
        Some(0) => "now".into(),
        Some(left) => format!("in {}", lasting(left)),
        None if now_ms - at_ms < 1_000 => "now".into(),
        None => format!("{} overdue", lasting(now_ms - at_ms)),
    }
}

/// How long ago something was: `12s ago`, `just now`.
pub fn ago(at_ms: u64, now_ms: u64) -> String {
    match now_ms.saturating_sub(at_ms) {
        0..1_000 => "just now".into(),
        span => format!("{} ago", lasting(span)),
    }
}

/// Each check with its verdict, what it found, and what to do.
pub fn diagnosis(diagnosis: &Diagnosis, pen: &Pen) -> String {
    let mut text = String::new();
    let wide =
        diagnosis.checks.iter().map(|check| console::measure_text_width(&escape(&check.name))).max().unwrap_or(0);
    for check in &diagnosis.checks {
        let verdict = match check.verdict {
            Verdict::Ok => pen.green("ok     "),
            Verdict::Warning => pen.yellow("warning"),
            Verdict::Bad => pen.red("bad    "),
        };
        let name = escape(&check.name);
        let fill = " ".repeat(wide - console::measure_text_width(&name));
        text.push_str(&format!("{verdict}  {name}{fill}  {}\n", escape(&check.text)));
        if !check.remedy.is_empty() {
            text.push_str(&format!("{}→ {}\n", " ".repeat(wide + 11), escape(&check.remedy)));
        }
    }
    let number = |verdict| diagnosis.checks.iter().filter(|check| check.verdict == verdict).count();
    text.push_str(&match (number(Verdict::Bad), number(Verdict::Warning)) {
        (0, 0) => "all is well\n".to_owned(),
        (0, warnings) => format!("it works; {} to look at\n", step::text::counted(warnings as u64, "thing")),
        (bad, _) => format!("{} not work\n", if bad == 1 { "1 thing does".into() } else { format!("{bad} things do") }),
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_from_now() {
        assert_eq!(until(12_000, 0), "in 12s");
        assert_eq!(until(5, 5), "now");
        assert_eq!(until(5, 900), "now");
        assert_eq!(until(0, 61_000), "1m 1s overdue");
        assert_eq!(ago(1_000, 1_999), "just now");
        assert_eq!(ago(1_000, 301_000), "5m ago");
        // Another machine's clock may be ahead.
        assert_eq!(ago(9_000, 1_000), "just now");
    }
}
