//! A place looks the same, whichever way one came.

use super::{folder, golden, in_memory, open, page};

#[test]
fn the_way_back_shows_what_the_way_there_showed() {
    for file in std::fs::read_dir(folder()).unwrap() {
        let name = file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned();
        let mut session = open(&name);
        let mut there = vec![page(&mut session, "show")];
        loop {
            let one = page(&mut session, "n");
            if one == "no such record after this one\n" {
                break;
            }
            there.push(one);
        }
        assert!(there.len() > 5, "{name}");
        for seq in (0..there.len() - 1).rev() {
            assert_eq!(page(&mut session, "p"), there[seq], "{name} {seq}");
        }
        assert_eq!(page(&mut session, "p"), "no such record before this one\n");
        // Across, with a stride that meets every record in disorder.
        let mut at = 0;
        for _ in 0..there.len() {
            at = (at + 7_919) % there.len();
            assert_eq!(page(&mut session, &format!("go {at}")), there[at], "{name} {at}");
        }
    }
}

/// A long journal with several starts: copies are thinned, and a node is found through all of it.
#[test]
fn many_starts_are_walked_as_one() {
    let one = std::fs::read(golden("decider-fails")).unwrap();
    let mut writer = journal::Writer::new(Vec::new());
    for _ in 0..12 {
        let mut reader = journal::Reader::new(one.as_slice());
        while let Some(line) = reader.next_line().unwrap() {
            writer.append(line.at_ms, &line.entry).unwrap();
        }
    }
    let mut session = in_memory(writer.into_inner());
    assert!(session.opening().contains("12 starts"), "{}", session.opening());
    let records = one.iter().filter(|byte| **byte == b'\n').count();
    for (command, seq) in
        [("n start", records), ("n start", 2 * records), ("p start", records), ("go last", 12 * records - 1)]
    {
        assert!(page(&mut session, command).starts_with(&format!("record {seq}/")), "{command}");
    }
    let last = page(&mut session, "p violation");
    assert_eq!(last, "no such record before this one\n");
    let mut found = Vec::new();
    loop {
        let one = page(&mut session, "p R12 web-5");
        match one.strip_prefix("record ") {
            Some(rest) => found.push(rest.split('/').next().unwrap().parse::<usize>().unwrap() % records),
            None => break,
        }
    }
    assert!(found.len() == 12 && found.windows(2).all(|pair| pair[0] == pair[1]), "{found:?}");
}

/// What the engine of this program does not do is a violation, and nothing is said about facts from there on.
#[test]
fn a_history_that_no_engine_made_is_followed_as_far_as_it_goes() {
    let bytes = std::fs::read(golden("01-climb")).unwrap();
    let mut writer = journal::Writer::new(Vec::new());
    let mut reader = journal::Reader::new(bytes.as_slice());
    let mut forged = None;
    while let Some(mut line) = reader.next_line().unwrap() {
        if let journal::Entry::Dispatch { id, .. } = &mut line.entry
            && forged.is_none()
        {
            id.sequence += 7;
            forged = Some(line.seq);
        }
        writer.append(line.at_ms, &line.entry).unwrap();
    }
    let mut session = in_memory(writer.into_inner());
    let found = page(&mut session, "n violation");
    assert!(found.starts_with(&format!("record {}/", forged.unwrap())), "{found}");
    assert!(found.contains("does not follow"), "{found}");
    let later = page(&mut session, "n");
    assert!(later.contains("facts are not known"), "{later}");
    let before = page(&mut session, "p 2");
    assert!(before.contains("stage"), "{before}");
}

/// A plan that the engine refuses is a violation, unless a simulated fault gave it.
#[test]
fn a_refused_plan_is_a_violation_with_its_property() {
    for (digest, broken) in [("native", true), (journal::SIMULATED, false)] {
        let bytes = std::fs::read(golden("01-climb")).unwrap();
        let (mut writer, mut reader) = (journal::Writer::new(Vec::new()), journal::Reader::new(bytes.as_slice()));
        while let Some(mut line) = reader.next_line().unwrap() {
            let first = match &mut line.entry {
                journal::Entry::Pass { decider, answer: journal::Answer::Plan(plan), .. } => {
                    *decider = digest.into();
                    plan.decisions.verb = vec![decider::Verb::DestroyLease.code()];
                    true
                }
                _ => false,
            };
            writer.append(line.at_ms, &line.entry).unwrap();
            if first {
                break;
            }
        }
        let mut session = in_memory(writer.into_inner());
        let found = page(&mut session, "n violation");
        assert_eq!(found.contains("violation: SPEC 4: the plan is refused: destroy-lease"), broken, "{found}");
        assert!(page(&mut session, "node web-0").contains("web-0"));
        let last = page(&mut session, "go last");
        assert!(last.contains("not applied") && last.contains("by a simulated fault") != broken, "{last}");
        page(&mut session, "go first");
        assert!(page(&mut session, "n failure").starts_with("record 2/"), "{digest}");
    }
}
