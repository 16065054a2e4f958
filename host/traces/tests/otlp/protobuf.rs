//! Reads an `ExportTraceServiceRequest` as far as the tests look at it, by the numbers of its fields
//! (opentelemetry/proto/trace/v1/trace.proto), without the code that wrote it.

use std::collections::BTreeMap;

#[derive(Debug)]
pub struct Batch {
    pub resource: BTreeMap<String, String>,
    pub spans: Vec<Span>,
}

#[derive(Debug)]
pub struct Span {
    pub trace: Vec<u8>,
    pub id: Vec<u8>,
    pub parent: Vec<u8>,
    pub name: String,
    pub start_ns: u64,
    pub end_ns: u64,
    pub attributes: BTreeMap<String, String>,
}

enum Value<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first().expect("a number ends");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return value;
        }
        shift += 7;
    }
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> &'b [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => Value::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
            2 => {
                let count = usize::try_from(varint(&mut bytes)).unwrap();
                Value::Bytes(take(&mut bytes, count))
            }
            5 => Value::Number(u64::from(u32::from_le_bytes(take(&mut bytes, 4).try_into().unwrap()))),
            kind => panic!("a field of kind {kind}"),
        };
        fields.push((tag >> 3, value));
    }
    fields
}

fn parts(bytes: &[u8], number: u64) -> Vec<&[u8]> {
    let found = fields(bytes).into_iter().filter_map(|(field, value)| match value {
        Value::Bytes(bytes) if field == number => Some(bytes),
        _ => None,
    });
    found.collect()
}

fn number(bytes: &[u8], number: u64) -> u64 {
    let found = fields(bytes).into_iter().find_map(|(field, value)| match value {
        Value::Number(value) if field == number => Some(value),
        _ => None,
    });
    found.unwrap_or(0)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// `KeyValue`s: texts, truths and whole numbers, as text.
fn attributes(all: Vec<&[u8]>) -> BTreeMap<String, String> {
    let pair = |bytes: &[u8]| {
        let key = text(parts(bytes, 1).first().expect("a key"));
        let value = *parts(bytes, 2).first()?;
        let value = fields(value).into_iter().find_map(|(field, value)| match (field, value) {
            (1, Value::Bytes(bytes)) => Some(text(bytes)),
            (2, Value::Number(number)) => Some((number == 1).to_string()),
            (3, Value::Number(number)) => Some(number.cast_signed().to_string()),
            _ => None,
        })?;
        Some((key, value))
    };
    all.into_iter().filter_map(pair).collect()
}

/// The `ResourceSpans` of a request.
pub fn batches(request: &[u8]) -> Vec<Batch> {
    let batch = |bytes: &[u8]| {
        let resource = parts(bytes, 1).first().map(|resource| attributes(parts(resource, 1))).unwrap_or_default();
        let scopes = parts(bytes, 2);
        Batch { resource, spans: scopes.iter().flat_map(|scope| parts(scope, 2)).map(span).collect() }
    };
    parts(request, 1).into_iter().map(batch).collect()
}

fn span(bytes: &[u8]) -> Span {
    let first = |number: u64| parts(bytes, number).first().map(|bytes| bytes.to_vec()).unwrap_or_default();
    Span {
        trace: first(1),
        id: first(2),
        parent: first(4),
        name: text(&first(5)),
        start_ns: number(bytes, 7),
        end_ns: number(bytes, 8),
        attributes: attributes(parts(bytes, 9)),
    }
}
