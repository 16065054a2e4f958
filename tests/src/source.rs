//! The repository's own files, for the tests that keep it tidy.

use std::path::{Path, PathBuf};

/// A file of the repository.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its path below the root, with `/`.
    pub path: String,
    /// Its text; bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// The folder that holds the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// All files of the repository, in order. Build output and git's own folder are none of it.
pub fn files() -> std::io::Result<Vec<SourceFile>> {
    let mut found = Vec::new();
    walk(&root(), "", &mut found)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn walk(folder: &Path, below: &str, found: &mut Vec<SourceFile>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            let is_output = entry.path().join("CACHEDIR.TAG").exists();
            let is_fuzzed = path.starts_with("fuzz/") && matches!(name.as_str(), "corpus" | "crashes");
            if name != ".git" && name != "target" && !is_output && !is_fuzzed {
                walk(&entry.path(), &path, found)?;
            }
        } else if kind.is_file() && name != ".git" {
            let text = String::from_utf8_lossy(&std::fs::read(entry.path())?).into_owned();
            found.push(SourceFile { path, text });
        }
    }
    Ok(())
}

impl SourceFile {
    /// Whether it is Rust.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether it is only there to test: a file of a `tests` or `benches` folder, an example guest, or a module of unit tests.
    pub fn is_test(&self) -> bool {
        let mut parts = self.path.split('/');
        parts.any(|part| matches!(part, "tests" | "benches" | "tests.rs")) || self.path.ends_with("_tests.rs")
    }

    /// Its lines of code with their numbers from 1: comments, the content of texts, and unit tests (from the first
    /// `#[cfg(test)]` on a line of its own that opens a `mod … {` to the end) are left out.
    pub fn code(&self) -> Vec<(usize, String)> {
        let lines: Vec<&str> = self.text.lines().collect();
        let tests = lines.windows(2).position(|pair| {
            pair[0].trim() == "#[cfg(test)]" && pair[1].trim_start().starts_with("mod ") && pair[1].ends_with('{')
        });
        let own = &lines[..tests.unwrap_or(lines.len())];
        own.iter().enumerate().map(|(at, line)| (at + 1, bare(line))).filter(|(_, line)| !line.is_empty()).collect()
    }
}

/// A line without its comment and without the content of its texts. Texts of several lines are not followed.
fn bare(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.trim().chars().peekable();
    let mut in_text = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' if in_text => _ = chars.next(),
            '"' => {
                in_text = !in_text;
                out.push('"');
            }
            _ if in_text => {}
            '/' if chars.peek() == Some(&'/') => break,
            '\'' if chars.clone().take(2).eq(['"', '\'']) => _ = (chars.next(), chars.next()),
            _ => out.push(c),
        }
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_texts_are_no_code() {
        assert_eq!(bare("  let x = \"a // b \\\" c\"; // unwrap()"), "let x = \"\";");
        assert_eq!(bare("/// docs"), "");
        assert_eq!(bare("x == '\"' && y"), "x ==  && y");
    }

    #[test]
    fn unit_tests_are_no_code() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    x.unwrap()\n}\n".to_owned();
        let file = SourceFile { path: "a.rs".into(), text };
        assert_eq!(file.code(), [(1, "fn a() {}".to_owned())]);
    }
}
