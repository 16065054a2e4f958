//! The ways in which editors write a file.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::fixture::{Place, STEADY, Up, fleet, group, until};

fn of(count: u32) -> String {
    fleet(&[group("web", count, STEADY)])
}

fn check(place: &Place, up: &mut Up, write: &mut dyn FnMut(&Path, &str)) {
    up.converged(0);
    for count in [3, 1, 2] {
        let mark = up.mark();
        write(&place.file(), &of(count));
        up.converged(mark);
        assert_eq!(place.pids().len(), count as usize);
    }
    up.take_down(Signal::INT);
    place.assert_empty();
}

fn writing(mut write: impl FnMut(&Path, &str)) {
    let place = Place::with(&of(1));
    let mut up = place.up(&[]);
    check(&place, &mut up, &mut write);
}

#[test]
fn in_place() {
    writing(|path, text| std::fs::write(path, text).unwrap());
}

#[test]
fn renamed_over() {
    writing(|path, text| {
        let fresh = path.with_extension("toml.new");
        std::fs::write(&fresh, text).unwrap();
        std::fs::rename(&fresh, path).unwrap();
    });
}

/// With a pause in which there is no file at all: that is said, and nothing else follows from it.
#[test]
fn deleted_and_created() {
    let place = Place::with(&of(1));
    let mut up = place.up(&[]);
    up.converged(0);
    for count in [3, 1] {
        let (before, mark, said) = (place.leases(), up.mark(), up.errors().len());
        std::fs::remove_file(place.file()).unwrap();
        up.note(mark, "nothing changed");
        // Two pipes: the note may be read before the error.
        until("the error", || up.errors()[said..].contains("fleet.toml").then_some(()));
        assert_eq!(place.leases(), before);
        std::fs::write(place.file(), of(count)).unwrap();
        up.converged(mark);
        assert_eq!(place.pids().len(), count as usize);
    }
    up.take_down(Signal::INT);
    place.assert_empty();
}

/// As configuration is mounted in containers: the file is a link, and the link is replaced.
#[test]
fn a_link_that_is_swapped() {
    let place = Place::new();
    let folder = |at: usize| {
        let folder = place.path().join(format!("v{at}"));
        std::fs::create_dir_all(&folder).unwrap();
        folder.join("fleet.toml")
    };
    std::fs::write(folder(0), of(1)).unwrap();
    symlink(folder(0), place.file()).unwrap();
    let mut at = 0;
    let mut up = place.up(&[]);
    check(&place, &mut up, &mut |path, text| {
        at += 1;
        std::fs::write(folder(at), text).unwrap();
        let fresh = path.with_extension("link");
        symlink(folder(at), &fresh).unwrap();
        std::fs::rename(&fresh, path).unwrap();
    });
}

/// What a link points to is written in its own folder.
#[test]
fn behind_a_link() {
    let place = Place::new();
    let real = place.path().join("real");
    std::fs::create_dir_all(&real).unwrap();
    std::fs::write(real.join("it.toml"), of(1)).unwrap();
    symlink(real.join("it.toml"), place.file()).unwrap();
    let mut up = place.up(&[]);
    check(&place, &mut up, &mut |_, text| std::fs::write(real.join("it.toml"), text).unwrap());
}

/// Piece by piece, each of them a fleet by itself.
#[test]
fn slowly_in_place() {
    for _ in 0..50 {
        let place = Place::with(&of(2));
        let mut up = place.up(&[]);
        up.converged(0);
        let (before, mark) = (place.leases(), up.mark());
        let text = fleet(&[group("web", 2, STEADY), group("db", 1, STEADY)]);
        let began = Instant::now();
        let mut file = std::fs::File::create(place.file()).unwrap();
        let pieces = ["run = \"demo\"\n", &text["run = \"demo\"\n".len()..]];
        for piece in pieces {
            std::thread::sleep(Duration::from_millis(5));
            std::io::Write::write_all(&mut file, piece.as_bytes()).unwrap();
        }
        // A file that does not change for 0.1 s is read. Where the machine held the writer up for so long, it says nothing.
        let in_time = began.elapsed() < Duration::from_millis(90);
        up.converged(mark);
        let untouched = before.iter().all(|(slot, lease)| place.leases().get(slot) == Some(lease));
        up.take_down(Signal::INT);
        place.assert_empty();
        if in_time {
            assert!(untouched, "somebody was removed in between");
            return;
        }
    }
    panic!("the writer was held up each time");
}

#[test]
fn a_touch_is_no_change() {
    let place = Place::with(&of(2));
    let mut up = place.up(&[]);
    up.converged(0);
    let (before, mark) = (place.leases(), up.mark());
    let text = std::fs::read_to_string(place.file()).unwrap();
    for round in 0..5 {
        if round % 2 == 0 {
            place.write(&text);
        } else {
            let file = std::fs::File::options().append(true).open(place.file()).unwrap();
            file.set_modified(std::time::SystemTime::now()).unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(80));
    }
    // A comment is no change of the fleet.
    place.write(&format!("# a comment\n{text}"));
    up.note(mark, "generation 1");
    assert_eq!(place.leases(), before);
    assert_eq!(up.mark(), mark + 1);
    up.take_down(Signal::INT);
    place.assert_empty();
}
