//! What a command would do.

use api::wire::{Consequences, Difference};
use step::text::escape;

use super::text::Pen;

/// Values longer than this are cut: a file's content is not a line.
const VALUE_CHARS: usize = 80;

/// What goes, what is replaced, what comes, and what stays.
pub fn plan(of: &Consequences, base: u64, pen: &Pen) -> String {
    let mut text = match of.generation == base {
        true => format!("generation {base} stays\n"),
        false => format!("generation {base} → {}\n", of.generation),
    };
    let counts = [of.destroys.len(), of.replaces.len(), of.creates.len(), of.keeps as usize];
    let wide = counts.iter().map(|count| count.to_string().len()).max().unwrap_or(1);
    let mut part = |sign: &str, names: &[String], verb: &str| {
        if names.is_empty() {
            return;
        }
        let line = format!("{sign} {:>wide$} {verb:<9}  {}", names.len(), escape(&ranges(names)));
        let line = match sign {
            "-" => pen.red(&line),
            "~" => pen.yellow(&line),
            _ => pen.green(&line),
        };
        text.push_str(&format!("  {line}\n"));
    };
    part("-", &of.destroys, "destroyed");
    part("~", &of.replaces, "replaced");
    part("+", &of.creates, "created");
    if of.keeps > 0 {
        text.push_str(&format!("  = {:>wide$} untouched\n", of.keeps));
    }
    text
}

/// Which fields differ, and how.
pub fn differences(of: &[Difference], pen: &Pen) -> String {
    let mut text = String::new();
    for difference in of {
        let value = |value: &Option<String>| {
            value.as_deref().map(|value| {
                let value = escape(value);
                match value.char_indices().nth(VALUE_CHARS) {
                    Some((end, _)) => format!("{}…", &value[..end]),
                    None => value,
                }
            })
        };
        let (sign, line) = match (value(&difference.from), value(&difference.to)) {
            (Some(from), Some(to)) => ("~", format!("{from} → {to}")),
            (None, Some(to)) => ("+", to),
            (Some(from), None) => ("-", from),
            (None, None) => ("~", "differs (its value is not shown)".into()),
        };
        let field = escape(&difference.field);
        text.push_str(&format!("  {sign} {}  {line}\n", pen.bold(&field)));
    }
    text
}

/// A name, and the group and the indices that it stands for where it has any.
struct Range {
    name: String,
    of: Option<(String, u64, u64)>,
}

/// Names in a line, with neighbours drawn together: `web-0 … web-3, db-1`.
pub fn ranges(names: &[String]) -> String {
    let mut out: Vec<Range> = Vec::new();
    for name in names {
        let parts = name.rsplit_once('-').and_then(|(group, index)| Some((group, index.parse::<u64>().ok()?)));
        if let (Some(Range { of: Some((group, _, last)), .. }), Some((next, index))) = (out.last_mut(), parts)
            && group == next
            && last.checked_add(1) == Some(index)
        {
            *last = index;
            continue;
        }
        out.push(Range { name: name.clone(), of: parts.map(|(group, index)| (group.to_owned(), index, index)) });
    }
    let words = out.into_iter().map(|Range { name, of }| match of {
        Some((group, first, last)) if last == first + 1 => format!("{group}-{first}, {group}-{last}"),
        Some((group, first, last)) if last > first => format!("{group}-{first} … {group}-{last}"),
        _ => name,
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_drawn_together() {
        let names = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        assert_eq!(ranges(&names(&["web-0", "web-1", "web-2", "web-4", "db-5", "x"])), "web-0 … web-2, web-4, db-5, x");
        assert_eq!(ranges(&names(&["a-1", "a-2"])), "a-1, a-2");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn counts_are_as_wide_as_the_widest() {
        let names = |count: u32| (0..count).map(|at| format!("web-{at}")).collect::<Vec<_>>();
        let of = Consequences { creates: names(1), keeps: 3, generation: 2, ..Consequences::default() };
        let text = plan(&of, 1, &Pen::plain(0));
        assert_eq!(text, "generation 1 → 2\n  + 1 created    web-0\n  = 3 untouched\n");
        let text = plan(&Consequences { keeps: 120, ..of }, 1, &Pen::plain(0));
        assert!(text.contains("  +   1 created    web-0\n  = 120 untouched\n"), "{text}");
    }
}
