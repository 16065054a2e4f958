use journal::{Damage, MAX_LINE_BYTES, ReadError, Reader, Verdict, Writer, verify};

use crate::fixture::{Recorded, again, config, native, shape, story};

fn read(bytes: &[u8]) -> Result<Verdict, ReadError> {
    verify(&mut Reader::new(bytes))
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

#[track_caller]
fn damage(bytes: &[u8]) -> (u64, Damage) {
    match read(bytes) {
        Err(ReadError::Damaged { line, damage, .. }) => (line, damage),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_whole_journal_says_what_is_in_it() {
    let bytes = story(native);
    let verdict = read(&bytes).unwrap();
    assert!(verdict.ends_well());
    assert_eq!((verdict.records, verdict.torn_bytes), (lines(&bytes).len() as u64, 0));
    assert_eq!(verdict.whole_bytes, bytes.len() as u64);
    let [segment] = &verdict.segments[..] else { panic!("{verdict:?}") };
    assert_eq!((segment.run.as_str(), segment.decider.name.as_str(), segment.ended), ("demo", "ladder", true));
}

/// Every byte, every bit: nothing gets past.
#[test]
fn any_flipped_bit_is_detected() {
    let mut r = Recorded::new(native);
    r.feed(engine::io::Input::Desired(shape(1, 1)));
    let bytes = r.end().into_inner();
    assert!(read(&bytes).unwrap().ends_well());
    let mut flips = 0;
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            let sound = read(&flipped).is_ok_and(|verdict| verdict.ends_well());
            assert!(
                !sound,
                "bit {bit} of byte {at}: {:?}",
                String::from_utf8_lossy(&flipped[at.saturating_sub(20)..=at])
            );
            flips += 1;
        }
    }
    assert!(flips > 20_000, "{flips}");
}

/// A write that stopped anywhere leaves a prefix that verifies and replays.
#[test]
fn a_tail_torn_anywhere_is_cut_back_to_the_last_whole_record() {
    let bytes = story(native);
    let first = lines(&bytes)[0].len();
    let mut clean = 0;
    for cut in 0..=bytes.len() {
        let torn = &bytes[..cut];
        if cut < first {
            let error = read(torn).unwrap_err();
            assert!(matches!(error, ReadError::Empty | ReadError::NotAJournal { .. }), "{cut}: {error}");
            continue;
        }
        let verdict = read(torn).unwrap_or_else(|error| panic!("{cut}: {error}"));
        assert_eq!(verdict.whole_bytes + verdict.torn_bytes, cut as u64);
        assert_eq!(verdict.ends_well(), cut == bytes.len());
        clean += usize::from(verdict.torn_bytes == 0);
        let whole = &torn[..verdict.whole_bytes as usize];
        let kept = read(whole).unwrap();
        assert_eq!((kept.records, kept.torn_bytes, kept.last_hash), (verdict.records, 0, verdict.last_hash));
        // Replaying is slower: at every record, and a byte before and after.
        if verdict.torn_bytes < 2 {
            let replay = again(whole, &journal::Against::Recorded, native).unwrap();
            assert!(replay.contrast.is_same());
            assert_eq!(replay.records, verdict.records);
        }
    }
    assert_eq!(clean, lines(&bytes).len(), "one clean cut behind each record");
}

#[test]
fn what_was_edited_is_named_with_its_place() {
    let bytes = story(native);
    let all = lines(&bytes);
    let join = |lines: &[&[u8]]| lines.concat();

    let mut removed = all.clone();
    removed.remove(3);
    assert_eq!(damage(&join(&removed)), (4, Damage::Missing { expected: 3, found: 4 }));
    removed.drain(3..6);
    assert_eq!(damage(&join(&removed)).1.to_string(), "records 3 to 6 are missing: the next one here is record 7");
    assert_eq!(damage(&join(&all[1..])), (1, Damage::Missing { expected: 0, found: 1 }));

    let mut swapped = all.clone();
    swapped.swap(5, 6);
    assert_eq!(damage(&join(&swapped)), (6, Damage::Missing { expected: 5, found: 6 }));

    let mut doubled = all.clone();
    doubled.insert(4, all[3]);
    assert_eq!(damage(&join(&doubled)), (5, Damage::Repeated { expected: 4, found: 3 }));

    let edited = String::from_utf8(bytes.clone()).unwrap().replacen("exit status 1", "exit status 0", 1);
    let (line, found) = damage(edited.as_bytes());
    assert_eq!(found, Damage::Changed { seq: line - 1 });
    assert!(found.to_string().contains("was changed after it was written"));

    // An edit with a fresh hash is sound by itself, and what follows does not follow it any more.
    let mut other = Recorded::new(native);
    other.now_ms = 1;
    other.feed(engine::io::Input::Desired(shape(1, 2)));
    let other = other.end().into_inner();
    let mut forged = all.clone();
    forged[1] = lines(&other)[1];
    assert_eq!(damage(&join(&forged)), (3, Damage::Broken { seq: 2 }));

    // Two lines run together, a line cut short in the middle, a blank line.
    let mut joined = all.clone();
    joined[2] = &all[2][..all[2].len() - 1];
    assert_eq!(damage(&join(&joined)), (3, Damage::Changed { seq: 2 }));
    let mut short = all.clone();
    short[2] = b"{}\n";
    assert!(matches!(damage(&join(&short)), (3, Damage::Malformed { seq: 2, .. })));
    short[2] = b"\n";
    assert!(matches!(damage(&join(&short)), (3, Damage::Malformed { seq: 2, .. })));
    let mut zeros = bytes.clone();
    let at = bytes.len() - 400;
    zeros[at..at + 100].fill(0);
    assert!(matches!(damage(&zeros).1, Damage::Changed { .. } | Damage::Malformed { .. }));
}

/// Records cut off at the end leave a sound chain: the end mark and the last hash tell.
#[test]
fn whole_records_cut_off_at_the_end_leave_no_end_mark() {
    let bytes = story(native);
    let all = lines(&bytes);
    let verdict = read(&all[..all.len() - 1].concat()).unwrap();
    assert!(!verdict.ends_well() && verdict.torn_bytes == 0);
    assert_ne!(verdict.last_hash, read(&bytes).unwrap().last_hash);
}

#[test]
fn a_second_life_goes_on_in_the_chain_of_the_first() {
    let mut first = Recorded::new(native);
    first.feed(engine::io::Input::Desired(shape(1, 2)));
    // Killed: no end, and an operation in flight.
    let config = engine::driver::DriverConfig { next_attempt: 33, epoch: 1, ..config() };
    let mut second = Recorded::with(native, first.writer, config);
    second.feed(engine::io::Input::Desired(shape(2, 1)));
    second.settle();
    let bytes = second.end().into_inner();
    let verdict = read(&bytes).unwrap();
    assert_eq!(verdict.segments.iter().map(|segment| segment.ended).collect::<Vec<_>>(), [false, true]);
    assert!(verdict.ends_well());
    let replay = again(&bytes, &journal::Against::Recorded, native).unwrap();
    assert_eq!((replay.starts, replay.unrecorded), (2, 0));
    assert!(replay.contrast.is_same());
}

#[test]
fn what_is_no_journal_is_refused_by_name() {
    let garbage: Vec<u8> = (0..10_000u32).map(|at| ((at * 7_919) >> 3) as u8).collect();
    for (bytes, words) in [
        (&b""[..], "it is empty"),
        (&garbage[..], "it begins with"),
        (b"run = \"demo\"\n", "it begins with \"run =\""),
        (b"\0\0\0", "it begins with"),
        (b"{\"v\":1,\"seq\":0", "no whole record"),
        (b"{", "no whole record"),
    ] {
        let error = read(bytes).unwrap_err().to_string();
        assert!(error.starts_with("not a journal") && error.contains(words), "{error}");
    }
    let bytes = String::from_utf8(story(native)).unwrap();
    let newer = read(bytes.replacen("{\"v\":1", "{\"v\":2", 1).as_bytes()).unwrap_err();
    assert!(newer.to_string().contains("format 2; this program knows 1"), "{newer}");
    let never = read(bytes.replacen("{\"v\":1", "{\"v\":0", 1).as_bytes()).unwrap_err();
    assert!(matches!(never, ReadError::Damaged { line: 1, .. }), "{never}");
}

/// Sound hashes, nonsense inside: whoever can compute a hash can write it.
#[test]
fn nonsense_with_a_sound_hash_is_refused() {
    let content = |record: &str| {
        let zeros = "0".repeat(64);
        let mut line = format!("{{\"v\":1,\"seq\":0,\"at\":0,\"prev\":\"{zeros}\",\"record\":{record}");
        let hash = journal::Hash::of(line.as_bytes());
        line.push_str(&format!(",\"hash\":\"{hash}\"}}\n"));
        line
    };
    for record in ["\"end\"", "{}", "null", "{\"start\":{}}", "{\"pass\":{\"call\":-1}}", "{\"unheard-of\":1}", "[[[["]
    {
        let (line, found) = damage(content(record).as_bytes());
        assert!(line == 1 && matches!(found, Damage::Unreadable { seq: 0, .. }), "{record}: {found}");
    }
    let spaced = content("\"end\"").replacen("\"seq\":0", "\"seq\": 0", 1);
    assert!(matches!(damage(spaced.as_bytes()).1, Damage::Changed { seq: 0 }));
}

/// Memory is bounded, whatever a line is.
#[test]
fn a_line_without_an_end_is_refused() {
    struct Endless(u64);
    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            buffer.fill(b'x');
            self.0 += buffer.len() as u64;
            assert!(self.0 < 2 * MAX_LINE_BYTES as u64, "it reads on and on");
            Ok(buffer.len())
        }
    }
    use std::io::{BufReader, Read};
    let error = verify(&mut Reader::new(BufReader::new(b"{\"v\":1".chain(Endless(0))))).unwrap_err();
    assert!(error.to_string().contains("its first line is longer than"), "{error}");
    let bytes = story(native);
    let whole = lines(&bytes)[..3].concat();
    let error = verify(&mut Reader::new(BufReader::new(whole.chain(Endless(0))))).unwrap_err();
    assert!(matches!(error, ReadError::Damaged { line: 4, damage: Damage::TooLong { seq: 3 }, .. }), "{error}");
}

#[test]
fn a_record_that_could_not_be_read_is_not_written() {
    let mut writer = Writer::new(Vec::new());
    let (mut recorder, start) = journal::Recorder::start(&config(), &decider::describe());
    writer.append(0, &start.entry()).unwrap();
    let before = writer.chain();
    let reason = "x".repeat(MAX_LINE_BYTES);
    let id = engine::id::OperationId { attempt: engine::id::AttemptId(1), sequence: 1 };
    let result = Err(engine::io::Fault::retryable(reason));
    let draft = recorder.folded(engine::io::Input::Completed { id, result }, None).unwrap();
    let error = writer.append(0, &draft.entry()).unwrap_err().to_string();
    assert!(error.contains("record 1 would have 67109"), "{error}");
    assert_eq!(writer.chain(), before);
    writer.append(0, &recorder.end().entry()).unwrap();
    assert!(read(&writer.into_inner()).unwrap().ends_well());
}
