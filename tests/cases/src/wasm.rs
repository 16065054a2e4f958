//! WebAssembly written by hand, for components that no tool would make.

/// A number in the format's variable length.
pub fn leb(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// A section: its id, its size, its content.
pub fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id], &leb(content.len() as u64)[..], content].concat()
}

/// A number of equal items, with the number before them.
pub fn repeated(count: usize, item: &[u8]) -> Vec<u8> {
    [leb(count as u64), item.repeat(count)].concat()
}

/// A list of items, with their number before them.
pub fn list(items: impl ExactSizeIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut bytes = leb(items.len() as u64);
    items.for_each(|item| bytes.extend(item));
    bytes
}

/// A core module of these sections.
pub fn module(sections: &[Vec<u8>]) -> Vec<u8> {
    [&b"\0asm\x01\0\0\0"[..], &sections.concat()].concat()
}

/// A component of these sections.
pub fn component(sections: &[Vec<u8>]) -> Vec<u8> {
    [&b"\0asm\x0d\0\x01\0"[..], &sections.concat()].concat()
}

/// A component that consists of a core module.
pub fn around(module: &[u8]) -> Vec<u8> {
    component(&[section(1, module)])
}

/// A module of functions without parameters and results, all with this body: its locals, its code, its end.
pub fn functions(count: usize, body: &[u8]) -> Vec<u8> {
    let body = [leb(body.len() as u64), body.to_vec()].concat();
    module(&[section(1, &[1, 0x60, 0, 0]), section(3, &repeated(count, &[0])), section(10, &repeated(count, &body))])
}

/// The body of a function with so many locals, in whose innermost loop each of them is set from the one before.
pub fn loops(depth: usize, locals: usize) -> Vec<u8> {
    let mut body = [vec![1], leb(locals as u64), vec![0x7f]].concat();
    body.extend([0x03, 0x40].repeat(depth));
    for local in 1..locals as u64 {
        body.extend([vec![0x20], leb(local - 1), vec![0x21], leb(local)].concat());
    }
    // Each loop may start again, as long as the last local is not zero.
    let again = [vec![0x20], leb(locals as u64 - 1), vec![0x0d, 0, 0x0b]].concat();
    body.extend(again.repeat(depth));
    body.push(0x0b);
    body
}

/// The body of a function that jumps to one of so many places, all of them the same.
pub fn jumps(count: usize) -> Vec<u8> {
    [vec![0, 0x02, 0x40, 0x41, 0, 0x0e], leb(count as u64), vec![0; count + 1], vec![0x0b, 0x0b]].concat()
}

/// The body of a function that does the same so many times.
pub fn again(count: usize, code: &[u8]) -> Vec<u8> {
    [vec![0], code.repeat(count), vec![0x0b]].concat()
}

/// A module of one function that takes and gives so many numbers, and of another that calls it so often.
pub fn passing(values: usize, calls: usize) -> Vec<u8> {
    let numbers = repeated(values, &[0x7e]);
    let types = [vec![2, 0x60], numbers.clone(), numbers, vec![0x60, 0, 0]].concat();
    let get = |local: u64| [vec![0x20], leb(local)].concat();
    let first = [vec![0], (0..values as u64).flat_map(get).collect(), vec![0x0b]].concat();
    let second =
        [vec![0], [0x42, 0].repeat(values), [0x10, 0].repeat(calls), [0x1a].repeat(values), vec![0x0b]].concat();
    let bodies = list([first, second].into_iter().map(|body| [leb(body.len() as u64), body].concat()));
    module(&[section(1, &types), section(3, &[2, 0, 1]), section(10, &bodies)])
}

/// A module of an empty function and so many variables of its own.
pub fn globals(count: usize) -> Vec<u8> {
    let variable = [0x70, 1, 0xd0, 0x70, 0x0b];
    let sections = [section(1, &[1, 0x60, 0, 0]), section(3, &[1, 0]), section(6, &repeated(count, &variable))];
    module(&[&sections[..], &[section(10, &[1, 2, 0, 0x0b])]].concat())
}
