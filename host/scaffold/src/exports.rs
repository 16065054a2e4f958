//! The exports of a core module: enough of wasm's binary format to give them other names.

/// The preamble of a core module: `\0asm`, version 1.
pub(crate) const PREAMBLE: &[u8] = b"\0asm\x01\0\0\0";
const EXPORTS: u8 = 7;

/// The sections of a module, each with its id; `None` where one is cut short, which is the last.
pub(crate) fn sections(module: &[u8]) -> impl Iterator<Item = Option<(u8, &[u8])>> {
    let mut rest = module.get(PREAMBLE.len()..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (id, after) = rest.split_first()?;
        let section = text(after);
        rest = section.map(|(_, rest)| rest).unwrap_or_default();
        Some(section.map(|(body, _)| (*id, body)))
    })
}

/// The module with other names for what it exports: each short name of `names` becomes its full one, unless the full one is
/// exported already. `None` when the module's sections do not add up.
pub(crate) fn rename(module: &[u8], names: &[(String, String)]) -> Option<Vec<u8>> {
    let mut out = PREAMBLE.to_vec();
    for section in sections(module) {
        let (id, body) = section?;
        out.push(id);
        if id == EXPORTS {
            put_text(&mut out, &renamed(body, names)?);
        } else {
            put_text(&mut out, body);
        }
    }
    Some(out)
}

fn renamed(body: &[u8], names: &[(String, String)]) -> Option<Vec<u8>> {
    let (count, mut rest) = number(body)?;
    let mut entries = Vec::new();
    for _ in 0..count {
        let (name, after) = text(rest)?;
        let (kind, after) = after.split_first()?;
        let (index, after) = number(after)?;
        entries.push((name, *kind, index));
        rest = after;
    }
    let exported = |name: &str| entries.iter().any(|(known, _, _)| *known == name.as_bytes());
    let mut out = Vec::new();
    put_number(&mut out, count);
    for (name, kind, index) in &entries {
        let full = names.iter().find(|(short, full)| short.as_bytes() == *name && !exported(full));
        put_text(&mut out, full.map_or(*name, |(_, full)| full.as_bytes()));
        out.push(*kind);
        put_number(&mut out, *index);
    }
    Some(out)
}

/// As many bytes as the number before them says, and what follows.
pub(crate) fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = number(bytes)?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

/// An unsigned number of at most 32 bits in LEB128, and what follows it.
fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((u32::try_from(value).ok()?, &bytes[at + 1..]));
        }
    }
    None
}

fn put_number(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_text(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    out.extend_from_slice(bytes);
}
