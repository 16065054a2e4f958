//! `homeostat decider new`, in every language: the project builds with its one command, the component imports nothing, passes what
//! the built-in decider passes, and decides as that does on snapshots that nobody thought of.
//!
//! Needs clang and lld for C, node and npm for JavaScript, TypeScript and AssemblyScript (`make test` sees to them), and a way to compile guests
//! for Rust. `HOMEOSTAT_SKIP_LANGUAGES=c,javascript` leaves out what a machine cannot have.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use decider::{Group, Intent, NO_INDEX, NodeRow, Nodes, Settings, Snapshot, Template};
use homeostat::sandbox::{Limits, LoadedDecider, Sandbox};

use super::packages::packages;
use super::{Folder, homeostat, refused, text};

const VARIABLE: &str = "HOMEOSTAT_SKIP_LANGUAGES";
/// A JavaScript engine is larger than what is loaded unless somebody says so.
const JAVASCRIPT_BYTES: u64 = 16 << 20;
/// Ten thousand failures in a row: an interpreter takes minutes for the half a million calls.
const LONG: &str = "41-ten-thousand-failures.txt";

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn skipped(language: &str) -> bool {
    let list = std::env::var(VARIABLE).unwrap_or_default();
    let skipped = list.split(',').any(|word| word == language);
    if skipped {
        eprintln!("{language} is left out: {VARIABLE}={list}");
    }
    skipped
}

/// The component of a new project, and the project.
fn built(language: &str, folder: &Folder) -> (PathBuf, PathBuf) {
    let project = begun(language, folder);
    let component = project.join("out.wasm");
    let output = build(&project, &component);
    assert!(
        output.status.success(),
        "build.sh for {language}: {}\n{}{}\n({VARIABLE}={language} leaves it out)",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    (component, project)
}

/// A new project, with what npm installs.
fn begun(language: &str, folder: &Folder) -> PathBuf {
    let project = folder.0.join("night-shift");
    let at = project.to_str().unwrap();
    let output = homeostat(&["decider", "new", "night-shift", "--lang", language, "--folder", at]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    if project.join("package.json").is_file() {
        std::os::unix::fs::symlink(packages(language, &project), project.join("node_modules")).unwrap();
    }
    project
}

fn build(project: &Path, component: &Path) -> Output {
    let mut build = Command::new(project.join("build.sh"));
    build.arg(component).env("HOMEOSTAT", env!("CARGO_BIN_EXE_homeostat")).stdin(Stdio::null());
    // What the outer cargo sets belongs to it.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["CARGO_TARGET_DIR", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC", "RUSTC_WRAPPER"].contains(&&*name)
            || name.starts_with("CARGO_PKG_")
            || name.starts_with("CARGO_MANIFEST_")
        {
            build.env_remove(name);
        }
    }
    build.output().unwrap()
}

/// A folder for the search path with what every `build.sh` uses, and no compiler.
fn without_compilers(folder: &Folder) -> PathBuf {
    let bare = folder.0.join("bin");
    std::fs::create_dir(&bare).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for program in ["sh", "dirname", "mktemp", "rm", "realpath", "sed", "ls"] {
        let found = std::env::split_paths(&path).map(|place| place.join(program)).find(|file| file.is_file());
        std::os::unix::fs::symlink(found.unwrap(), bare.join(program)).unwrap();
    }
    bare
}

#[test]
fn a_build_names_what_is_missing_and_how_to_get_it() {
    for (language, missing, advice) in [
        ("rust", "cargo", "rustup.rs"),
        ("javascript", "npm", "node 20"),
        ("typescript", "npm", "node 20"),
        ("c", "clang", "apt-get install clang lld"),
        ("assemblyscript", "npm", "node 20"),
    ] {
        let folder = Folder::new(&format!("bare-{language}"));
        let project = folder.0.join("night-shift");
        let at = project.to_str().unwrap();
        assert_eq!(
            homeostat(&["decider", "new", "night-shift", "--lang", language, "--folder", at]).status.code(),
            Some(0)
        );
        let mut build = Command::new(project.join("build.sh"));
        let output = build.env("PATH", without_compilers(&folder)).env_remove("CC").output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{language}");
        let said = text(&output.stderr);
        assert!(
            said.starts_with(&format!("build.sh: {missing} is missing: ")) && said.contains(advice),
            "{language}: {said}"
        );
        assert!(!project.join("night-shift.wasm").exists());
    }
}

/// Plays the project's own tests, and the scenarios.
fn conforms(component: &Path, project: &Path, javascript: bool) {
    let mut paths = vec![project.join("tests"), root("examples/policy-tests")];
    for entry in std::fs::read_dir(root("tests/scenarios")).unwrap() {
        let path = entry.unwrap().path();
        let long = path.file_name().is_some_and(|name| name == LONG);
        if path.extension().is_some_and(|ending| ending == "txt") && !(javascript && long) {
            paths.push(path);
        }
    }
    let limit = format!("component-bytes={JAVASCRIPT_BYTES}");
    let mut args = vec!["test"];
    args.extend(paths.iter().map(|path| path.to_str().unwrap()));
    args.extend(["--decider", component.to_str().unwrap()]);
    if javascript {
        args.extend(["--limit", &limit, "--time-limit", "10m"]);
    }
    let output = homeostat(&args);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("(night-shift 0.1.0,"), "{}", text(&output.stdout));
}

/// Loads it, which refuses what imports anything, and holds it against the native ladder.
fn decides_as_the_ladder(component: &Path, snapshots: u64) {
    let sandbox = Sandbox::new(Limits { component_bytes: JAVASCRIPT_BYTES, ..Limits::default() }).unwrap();
    let loaded: LoadedDecider = sandbox.load(&std::fs::read(component).unwrap()).unwrap();
    assert!(loaded.inspect().imports.is_empty());
    assert_eq!(loaded.inspect().contract, decider::CONTRACT);
    assert_eq!(loaded.description().rules, decider::describe().rules);
    for seed in 0..snapshots {
        let snapshot = anything(seed);
        let (native, answer) = (decider::reconcile(&snapshot), loaded.reconcile(&snapshot).unwrap());
        for (row, (one, other)) in
            snapshot.nodes.rows().zip(native.decisions.rows().zip(answer.decisions.rows())).collect::<Vec<_>>()
        {
            assert_eq!(one, other, "seed {seed}: {row:?} in {:?}", snapshot.groups.get(row.group as usize));
        }
        assert_eq!(native, answer, "seed {seed}");
    }
}

/// Splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// Mostly one that the contract lists, below `bound`; else any.
    fn code(&mut self, bound: u64) -> u8 {
        let code = if self.below(20) == 0 { self.below(256) } else { self.below(bound) };
        u8::try_from(code).unwrap()
    }

    /// None, past, now, future, and the end of time.
    fn instant(&mut self) -> u64 {
        [0, 0, 999, 1_000, 1_001, 5_000, 1 << 60, u64::MAX][usize::try_from(self.below(8)).unwrap()]
    }

    fn number(&mut self, bound: u64) -> u32 {
        u32::try_from(self.below(bound)).unwrap()
    }
}

/// A snapshot in which nothing has to make sense.
fn anything(seed: u64) -> Snapshot {
    let mut random = Random(seed);
    let groups: Vec<Group> = (0..3)
        .map(|at| Group {
            name: format!("gruppe-{at}-ü"),
            count: random.number(6),
            max_unavailable: (random.below(2) == 0).then(|| random.number(4)),
            max_surge: random.number(3),
            available: random.number(6),
            failing: random.number(4),
            trying: random.number(2),
            max_failing: (random.below(2) == 0).then(|| random.number(4)),
            pauses: if random.below(2) == 0 { 0 } else { random.code(8) },
            parameters: vec![("a".into(), "b".into())],
            ..Group::default()
        })
        .collect();
    let mut nodes = Nodes::default();
    for node in 0..200 {
        let stage = random.code(11);
        let vacant = stage == 0;
        let wanted = [NO_INDEX, 0, 0, 1][usize::try_from(random.below(4)).unwrap()];
        nodes.push(NodeRow {
            node,
            attempt: if vacant == (random.below(20) != 0) { 0 } else { u64::from(node) + 1 },
            group: [0, 1, 2, NO_INDEX, 7][usize::try_from(random.below(5)).unwrap()],
            slot: node,
            stage,
            intent: if random.below(2) == 0 { Intent::Active.code() } else { random.code(2) },
            template: if vacant { NO_INDEX } else { 0 },
            desired_template: wanted,
            live: [0, 1, 3, 7, random.code(8)][usize::try_from(random.below(5)).unwrap()],
            progress: random.code(11),
            pending: if random.below(3) == 0 { random.code(6) } else { 0 },
            pending_deadline: random.instant(),
            ambiguous: if random.below(2) == 0 { random.code(6) } else { 0 },
            failures: random.number(9),
            next_effect_at: random.instant(),
            probe_at: random.instant(),
            restart_at: random.instant(),
            stage_deadline: random.instant(),
            turn: if random.below(3) == 0 { NO_INDEX } else { random.number(4) },
            marks: random.code(2),
        });
    }
    Snapshot {
        now_ms: 1_000,
        run: "läuft".into(),
        generation: 3,
        settings: Settings::default(),
        groups,
        templates: vec![Template::default(), Template { role: "other".into(), ..Template::default() }],
        nodes,
    }
}

fn a_new_decider_in(language: &str) {
    if skipped(language) {
        return;
    }
    let folder = Folder::new(&format!("new-{language}"));
    let (component, project) = built(language, &folder);
    let javascript = language == "javascript";
    conforms(&component, &project, javascript);
    decides_as_the_ladder(&component, if javascript { 20 } else { 300 });
}

#[test]
fn a_new_decider_in_rust_builds_and_is_the_ladder() {
    a_new_decider_in("rust");
}

#[test]
fn a_new_decider_in_c_builds_and_is_the_ladder() {
    a_new_decider_in("c");
}

#[test]
fn a_new_decider_in_javascript_builds_and_is_the_ladder() {
    a_new_decider_in("javascript");
}

/// What the compiler makes of it is a decider in JavaScript; that one plays all scenarios.
#[test]
fn a_new_decider_in_typescript_is_checked_builds_and_is_the_ladder() {
    if skipped("typescript") {
        return;
    }
    let folder = Folder::new("new-typescript");
    let (component, project) = built("typescript", &folder);
    decides_as_the_ladder(&component, 20);
    // A word that the contract does not have is no program.
    let source = project.join("decider.ts");
    let typo = std::fs::read_to_string(&source).unwrap().replace("'mark-destroyed'", "'mark-as-destroyed'");
    std::fs::write(&source, typo).unwrap();
    let other = project.join("other.wasm");
    let output = build(&project, &other);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(!output.status.success() && said.contains("decider.ts") && said.contains("mark-as-destroyed"), "{said}");
    assert!(!other.exists());
}

#[test]
fn a_new_decider_in_assemblyscript_builds_and_is_the_ladder() {
    a_new_decider_in("assemblyscript");
}

#[test]
fn new_refuses_a_folder_that_is_in_use_and_a_name_that_is_none() {
    let folder = Folder::new("new-refused");
    folder.file("kept.txt", "kept");
    let at = folder.0.to_str().unwrap();
    assert!(refused(&["decider", "new", "mine", "--folder", at]).contains("something is there already"));
    for name in ["Mine", "core", "a b", "../mine"] {
        assert!(refused(&["decider", "new", name, "--folder", &format!("{at}/new")]).contains("cannot be the name"));
    }
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
}

/// What it says to do next can be pasted.
#[test]
fn new_quotes_a_folder_with_blanks() {
    let folder = Folder::new("new-blanks");
    let at = folder.0.join("two words");
    let output = homeostat(&["decider", "new", "mine", "--lang", "c", "--folder", at.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains(&format!("  cd '{}'\n", at.display())), "{}", text(&output.stdout));
}

#[test]
fn componentize_says_what_is_wrong_with_a_module() {
    let folder = Folder::new("componentize");
    let out = folder.0.join("out.wasm");
    let out = out.to_str().unwrap();
    let componentize = |bytes: &[u8]| {
        let module = folder.file("module.wasm", bytes);
        refused(&["decider", "componentize", &module, "--out", out])
    };
    assert!(componentize(b"hello").contains("does not begin as wasm does"));
    assert!(componentize(homeostat::sandbox::BUILT_IN).contains("a component already"));
    // Nothing in it; then an export section that is cut short.
    assert!(componentize(b"\0asm\x01\0\0\0").contains("does not make a decider"));
    assert!(componentize(b"\0asm\x01\0\0\0\x07\x7f\x01").contains("do not add up"));
    // It imports `env.f`.
    let importing = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x02\x09\x01\x03env\x01f\0\0";
    let said = componentize(importing);
    assert!(said.contains("env"), "{said}");
    assert!(!Path::new(out).exists());
}
