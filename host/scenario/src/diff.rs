//! Two lists of lines, and what differs.

/// A line of a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    /// `-` expected and not there, `+` there and not expected, a space in both.
    pub sign: char,
    /// The line.
    pub text: String,
}

impl DiffLine {
    pub(crate) fn new(sign: char, text: impl Into<String>) -> Self {
        DiffLine { sign, text: text.into() }
    }
}

/// Above this many lines on a side, only what is the same at both ends is taken off.
const MAX_LINES: usize = 400;

/// The lines of both, in order, by the longest common subsequence.
pub(crate) fn diff(expected: &[&str], got: &[&str]) -> Vec<DiffLine> {
    let head = expected.iter().zip(got).take_while(|(a, b)| a == b).count();
    let (expected_rest, got_rest) = (&expected[head..], &got[head..]);
    let tail = expected_rest.iter().rev().zip(got_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&expected_rest[..expected_rest.len() - tail], &got_rest[..got_rest.len() - tail]);
    let same = |lines: &[&str]| -> Vec<DiffLine> { lines.iter().map(|line| DiffLine::new(' ', *line)).collect() };
    let mut out = same(&expected[..head]);
    if a.len() > MAX_LINES || b.len() > MAX_LINES {
        out.extend(a.iter().map(|line| DiffLine::new('-', *line)));
        out.extend(b.iter().map(|line| DiffLine::new('+', *line)));
    } else {
        middle(a, b, &mut out);
    }
    out.extend(same(&expected_rest[expected_rest.len() - tail..]));
    out
}

fn middle(a: &[&str], b: &[&str], out: &mut Vec<DiffLine>) {
    let width = b.len() + 1;
    let mut longest = vec![0_u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i * width + j] = if a[i] == b[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            out.push(DiffLine::new(' ', a[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < a.len() && (j == b.len() || longest[(i + 1) * width + j] >= longest[i * width + j + 1]) {
            out.push(DiffLine::new('-', a[i]));
            i += 1;
        } else {
            out.push(DiffLine::new('+', b[j]));
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(expected: &[&str], got: &[&str]) -> String {
        diff(expected, got).iter().map(|line| format!("{}{}", line.sign, line.text)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_the_same_stays() {
        assert_eq!(text(&["a", "b", "c"], &["a", "x", "c"]), " a -b +x  c");
        assert_eq!(text(&[], &["a"]), "+a");
        assert_eq!(text(&["a", "b", "c", "d"], &["b", "d", "e"]), "-a  b -c  d +e");
        let many: Vec<String> = (0..900).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(diff(&many, &["x"]).len(), 901);
    }
}
