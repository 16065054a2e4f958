//! SPEC 9: every way in which a decider can be wrong is a named error, and the host goes on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use decider::{Plan, Snapshot};
use engine::validate::{PlanError, check_plan};
use homeostat::sandbox::{DeciderThread, GuestFailure, Limits, LoadError, LoadedDecider, Sandbox, digest};
use hostile_guests_artifact as guests;
use tests::snapshots::{Random, plausible};

fn sandbox() -> Sandbox {
    Sandbox::new(Limits::default()).unwrap()
}

fn load(bytes: &[u8]) -> LoadedDecider {
    sandbox().load(bytes).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(bytes: &[u8]) -> LoadError {
    sandbox().load(bytes).map(|decider| panic!("{decider:?} was loaded")).unwrap_err()
}

fn fleet(rows: usize) -> Snapshot {
    plausible(&mut Random::new(1), rows)
}

fn failure(bytes: &[u8], rows: usize) -> GuestFailure {
    load(bytes).reconcile(&fleet(rows)).unwrap_err()
}

// What is no decider at all.

#[test]
fn an_empty_file_is_named_so() {
    assert!(matches!(refused(b""), LoadError::Empty));
}

#[test]
fn random_bytes_are_shown_as_what_they_start_with() {
    let mut random = Random::new(9);
    let bytes: Vec<u8> = (0..4096).map(|_| random.number() as u8).collect();
    let error = refused(&bytes);
    assert!(matches!(&error, LoadError::NotWasm { start } if start.len() == 23), "{error}");
    assert_eq!(refused(b"#!/bin/sh\n").to_string(), "it is not WebAssembly: it starts with \"#!/bin/s\"");
}

#[test]
fn a_damaged_component_is_invalid_wherever_it_is_damaged() {
    let sandbox = sandbox();
    let whole = guests::NO_DECISIONS;
    let mut random = Random::new(3);
    for _ in 0..60 {
        let cut = 9 + random.below(whole.len() as u64 - 9) as usize;
        let error = sandbox.load(&whole[..cut]).unwrap_err();
        assert!(matches!(error, LoadError::Invalid { .. } | LoadError::OtherWorld { .. }), "cut at {cut}: {error}");
        let mut flipped = whole.to_vec();
        flipped[cut] ^= 1 << random.below(8);
        // Some flips are harmless; none may end the host.
        let _ = sandbox.load(&flipped);
    }
}

#[test]
fn a_core_module_is_told_from_a_component() {
    assert_eq!(
        refused(guests::CORE_MODULE).to_string(),
        "this is a core module, not a component; `wasm-tools component new` makes a component of it"
    );
}

#[test]
fn precompiled_code_is_refused() {
    let engine = wasmtime::Engine::default();
    let component = engine.precompile_component(guests::NO_DECISIONS).unwrap();
    assert!(matches!(refused(&component), LoadError::Precompiled { kind: "component" }));
    let module = engine.precompile_module(guests::CORE_MODULE).unwrap();
    assert!(matches!(refused(&module), LoadError::Precompiled { kind: "module" }));
}

#[test]
fn a_component_over_the_limit_is_not_even_read() {
    let limits = Limits { component_bytes: 1_000, ..Limits::default() };
    let sandbox = Sandbox::new(limits).unwrap();
    let expected = format!("it has {} bytes; 1000 is the limit", guests::SPIN.len());
    assert_eq!(sandbox.load(guests::SPIN).unwrap_err().to_string(), expected);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spin.wasm");
    std::fs::write(&path, guests::SPIN).unwrap();
    assert_eq!(sandbox.load_file(&path).unwrap_err().to_string(), expected);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().join("absent.wasm"), folder.path().to_path_buf()] {
        let error = sandbox().load_file(&path).unwrap_err();
        assert_eq!(error.class(), "read");
        assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
    }
}

// Components that are not admitted.

#[test]
fn callable_imports_are_refused_by_name() {
    let clock = refused(guests::IMPORTS_CLOCK).to_string();
    assert_eq!(clock, "it imports wasi:clocks/monotonic-clock@0.2.0 now; a decider imports nothing that can be called");
    let LoadError::Imports { imports } = refused(guests::IMPORTS_FILES) else { panic!("refused for another reason") };
    assert!(imports.contains(&"read".to_string()), "{imports:?}");
    assert!(imports.contains(&"wasi:filesystem/preopens@0.2.0 get-directories".to_string()), "{imports:?}");
    for (component, import) in [
        (guests::IMPORTS_RANDOM, "wasi:random/random@0.2.0 get-random-bytes"),
        (guests::IMPORTS_OWN, "homeostat:decider/policy@1.0.0 describe"),
    ] {
        let LoadError::Imports { imports } = refused(component) else { panic!("refused for another reason") };
        assert!(imports.contains(&import.to_string()), "{imports:?}");
    }
}

#[test]
fn an_import_of_types_only_is_let_through() {
    let engine = wasmtime::Engine::default();
    let component = wasmtime::component::Component::from_binary(&engine, guests::IMPORTS_TYPES).unwrap();
    let imports: Vec<String> = component.component_type().imports(&engine).map(|(name, _)| name.to_string()).collect();
    assert_eq!(imports, ["hostile:types/shared"]);
    // There is nothing behind its exports, so it stops as soon as it is asked what it is, and not before.
    let error = refused(guests::IMPORTS_TYPES);
    assert!(matches!(error, LoadError::Describe(GuestFailure::Panicked { .. })), "{error}");
}

#[test]
fn another_world_is_refused_with_what_it_exports() {
    assert_eq!(
        refused(guests::OTHER_WORLD).to_string(),
        "it does not export homeostat:decider/policy@1.1.0; it exports run, hostile:other/greeter"
    );
}

#[test]
fn another_contract_version_is_refused_with_both_versions() {
    for (component, place, found) in [
        (guests::INTERFACE_TWO, "exported interface", "2.0.0"),
        (guests::CONTRACT_TWO, "description", "2.0.0"),
        (guests::CONTRACT_NEWER_MINOR, "description", "1.7.0"),
    ] {
        let expected = format!("its {place}'s contract version is {found}; this host speaks 1.0 and 1.1");
        assert_eq!(refused(component).to_string(), expected);
    }
    assert_eq!(refused(guests::INTERFACE_UNVERSIONED).class(), "contract");
}

#[test]
fn missing_and_mistyped_functions_are_named() {
    let error = refused(guests::NO_RECONCILE);
    assert_eq!(error.to_string(), "homeostat:decider/policy@1.0.1 lacks the function reconcile");
    let error = refused(guests::OTHER_SIGNATURE);
    assert!(matches!(error, LoadError::Signature { function: "describe", .. }), "{error}");
}

#[test]
fn what_needs_too_much_from_the_start_is_refused() {
    let error = refused(guests::STARTS_LARGE);
    assert_eq!(error.class(), "resources", "{error}");
    assert!(error.to_string().starts_with("it needs more than the limits allow: memory"), "{error}");
    assert!(error.to_string().contains("limit of 0x10000000 bytes"), "{error}");
    let small = Limits { memory_bytes: 64 << 10, ..Limits::default() };
    let error = Sandbox::new(small).unwrap().load(guests::GROWS_TABLE).unwrap_err();
    assert_eq!(error.class(), "resources", "{error}");
}

#[test]
fn what_fails_before_it_answers_is_refused() {
    let fails = |bytes| match refused(bytes) {
        LoadError::Describe(failure) => ("describe", failure.class()),
        LoadError::Trial(failure) => ("trial", failure.class()),
        other => panic!("{other}"),
    };
    assert_eq!(fails(guests::DESCRIBE_SPIN), ("describe", "out-of-fuel"));
    assert_eq!(fails(guests::DESCRIBE_HUGE), ("describe", "answer-too-large"));
    assert_eq!(fails(guests::NAME_NOT_UTF8), ("describe", "malformed-answer"));
    assert_eq!(fails(guests::START_SPINS), ("describe", "out-of-fuel"));
    assert_eq!(fails(guests::SPIN_ALWAYS), ("trial", "out-of-fuel"));
    assert_eq!(fails(guests::DEEP_CALLS), ("trial", "stack-overflow"));
    assert_eq!(fails(guests::GROWS_TABLE), ("trial", "table-limit"));
    assert_eq!(fails(guests::LIST_OUTSIDE), ("trial", "malformed-answer"));
    assert_eq!(fails(guests::ALLOCATES_OUTSIDE), ("trial", "malformed-answer"));
    assert_eq!(fails(guests::DIVIDES_BY_ZERO), ("trial", "trap"));
    assert_eq!(fails(guests::WRITES_OUTSIDE), ("trial", "memory-out-of-bounds"));
    assert_eq!(fails(guests::MILLION_DECISIONS), ("trial", "answer-too-large"));
    assert_eq!(fails(guests::START_TRAPS), ("describe", "panicked"));
    assert_eq!(fails(guests::START_OVERRUNS), ("describe", "memory-out-of-bounds"));
    assert_eq!(fails(guests::DESCRIBE_AMPLIFIES), ("describe", "answer-too-large"));
    assert_eq!(fails(guests::POST_RETURN_SPINS), ("describe", "out-of-fuel"));
    assert_eq!(fails(guests::POST_RETURN_TRAPS), ("trial", "panicked"));
    assert_eq!(fails(guests::REALLOC_MISALIGNED), ("trial", "malformed-answer"));
    assert_eq!(fails(guests::REALLOC_SPINS), ("trial", "out-of-fuel"));
    assert_eq!(fails(guests::REALLOC_GROWS), ("trial", "out-of-memory"));
    assert_eq!(fails(guests::LIST_WITHOUT_END), ("trial", "malformed-answer"));
    assert_eq!(fails(guests::ANSWER_OUTSIDE), ("trial", "malformed-answer"));
}

#[test]
fn an_allocator_that_overlaps_harms_only_its_own_guest() {
    let overlaps = load(guests::REALLOC_OVERLAPS);
    assert_eq!(overlaps.reconcile(&fleet(50)), Ok(Plan::default()));
}

#[test]
fn numbers_that_are_none_have_the_same_bits_everywhere() {
    let plan = load(guests::NAN_GAMES).reconcile(&fleet(1)).unwrap();
    assert_eq!(plan.wake_at_ms, 0x7ff8_0000_0000_0000);
}

#[test]
fn a_description_is_bounded_and_printable() {
    for (component, field) in [
        (guests::DESCRIBE_TOO_MANY_RULES, "rules"),
        (guests::DESCRIBE_TWICE_THE_SAME_RULE, "rules[23].id"),
        (guests::DESCRIBE_CONTROL_CHARACTERS, "name"),
    ] {
        let error = refused(component);
        assert!(matches!(&error, LoadError::Description { field: found, .. } if found == field), "{error}");
        assert!(!error.to_string().contains('\u{1b}'), "{error}");
    }
}

#[test]
fn limits_that_cannot_work_are_refused() {
    let too_deep = Limits { native_stack_bytes: 64 << 20, ..Limits::default() };
    let too_wide = Limits { memory_bytes: 1 << 40, ..Limits::default() };
    for (limits, message) in [
        (too_deep, "the limit native-stack-bytes: 67108864 is not between 65536 and 1048576 bytes"),
        (too_wide, "the limit memory-bytes: 1099511627776 is not between 65536 and 4294967296 bytes"),
    ] {
        let error = Sandbox::new(limits).unwrap_err();
        assert_eq!((error.class(), error.to_string().as_str()), ("limits", message));
    }
}

#[test]
fn every_limit_is_set_by_its_name_and_has_a_range() {
    let written = serde_json::to_value(Limits::default()).unwrap();
    let names: Vec<&String> = written.as_object().unwrap().keys().collect();
    assert_eq!(names.len(), Limits::ALL.len());
    for limit in Limits::ALL {
        assert_eq!(written[limit.name], limit.of(&Limits::default()), "{limit:?}");
        for (value, works) in [(limit.least, true), (limit.most, true), (limit.least.wrapping_sub(1), false)] {
            let mut limits = Limits::default();
            let set = limits.set(limit.name, &value.to_string());
            // Where 0 is the least, what lies below it is the largest number.
            let works = works || (limit.least..=limit.most).contains(&value);
            assert_eq!(set.is_ok(), works, "{limit:?} {value}");
            assert_eq!(limit.of(&limits), if works { value } else { limit.of(&Limits::default()) }, "{limit:?}");
        }
    }
    let mut limits = Limits::default();
    limits.set("memory-bytes", "33_554_432").unwrap();
    assert_eq!(limits, Limits { memory_bytes: 32 << 20, ..Limits::default() });
    for (name, value, message) in [
        ("memory", "1", "\"memory\" is no limit; the limits are component-bytes, functions, complexity, fuel-base"),
        ("tables", "many", "tables: \"many\" is not a whole number"),
        ("tables", "-1", "tables: \"-1\" is not a whole number"),
        ("tables", "0", "tables: 0 is not between 1 and 100 tables"),
    ] {
        let error = limits.set(name, value).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

/// Both ends of every range are limits that a sandbox works with.
#[test]
fn limits_at_the_ends_of_their_ranges_make_a_sandbox() {
    for limit in Limits::ALL {
        for value in [limit.least, limit.most] {
            let mut limits = Limits::default();
            limits.set(limit.name, &value.to_string()).unwrap();
            let sandbox = Sandbox::new(limits).unwrap_or_else(|error| panic!("{limit:?} {value}: {error}"));
            // It may be too little for a decider; then that has a name.
            let decided = sandbox.built_in().map(|decider| decider.reconcile(&fleet(3)).is_ok());
            let works = matches!(decided, Ok(true));
            assert!(works || value == limit.least, "{limit:?} {value}: {decided:?}");
        }
    }
}

// Deciders that are admitted and fail later: the failure has a name and the limit.

#[test]
fn a_loop_without_an_end_runs_out_of_fuel() {
    let failure = failure(guests::SPIN, 3);
    assert_eq!(failure, GuestFailure::OutOfFuel { fuel: 50_300_000, nodes: 3 });
    assert!(failure.to_string().contains("50300000"), "{failure}");
}

#[test]
fn the_wall_clock_stops_what_fuel_does_not() {
    let limits = Limits { fuel_base: u64::MAX, wall_clock_ms: 200, ..Limits::default() };
    let spin = Sandbox::new(limits).unwrap().load(guests::SPIN).unwrap();
    let started = Instant::now();
    assert_eq!(spin.reconcile(&fleet(1)).unwrap_err(), GuestFailure::WallClock { limit_ms: 200 });
    assert!(started.elapsed() >= Duration::from_millis(190), "{:?}", started.elapsed());
}

#[test]
fn memory_without_an_end_is_out_of_memory() {
    let failure = failure(guests::MEMORY, 1);
    assert!(matches!(failure, GuestFailure::OutOfMemory { limit: 268_435_456, .. }), "{failure:?}");
}

#[test]
fn recursion_without_an_end_overruns_the_guests_own_stack() {
    let failure = failure(guests::RECURSION, 1);
    assert_eq!(failure, GuestFailure::MemoryOutOfBounds);
    assert!(failure.to_string().contains("recursion"), "{failure}");
}

#[test]
fn a_panic_is_named_with_the_decider() {
    let panics = load(guests::PANICS);
    assert_eq!(panics.reconcile(&Snapshot::default()), Ok(Plan::default()));
    let failure = panics.decide(&fleet(2)).unwrap_err();
    assert_eq!((failure.class.as_str(), failure.decider.as_str()), ("panicked", panics.digest()));
    // The next call has an instance of its own.
    assert_eq!(panics.reconcile(&Snapshot::default()), Ok(Plan::default()));
}

#[test]
fn a_decider_that_panics_for_one_node_decides_the_others() {
    let panics = load(guests::PANICS_FOR_ONE);
    let seven = fleet(7);
    assert_eq!(panics.reconcile(&seven).unwrap(), decider::reconcile(&seven));
    assert_eq!(panics.reconcile(&fleet(8)).unwrap_err().class(), "panicked");
}

#[test]
fn calls_beyond_the_pool_are_told_so() {
    let limits = Limits { concurrent_calls: 1, fuel_base: u64::MAX, wall_clock_ms: 3_000, ..Limits::default() };
    let sandbox = Sandbox::new(limits).unwrap();
    let (spin, built_in) = (sandbox.load(guests::SPIN).unwrap(), sandbox.built_in().unwrap());
    let exhausted = GuestFailure::PoolExhausted { limit: 1 };
    std::thread::scope(|scope| {
        // Whoever comes second is refused, be it this one.
        let spinning = scope.spawn(|| {
            loop {
                match spin.reconcile(&fleet(1)) {
                    Err(failure) if failure == exhausted => {}
                    came => return came,
                }
            }
        });
        while built_in.reconcile(&fleet(1)) != Err(exhausted.clone()) {
            assert!(!spinning.is_finished(), "two calls at once");
        }
        assert_eq!(spinning.join().unwrap().unwrap_err().class(), "wall-clock");
    });
}

#[test]
fn fuel_runs_out_at_the_same_place_every_time() {
    let snapshot = fleet(500);
    let enough = |fuel_base| {
        let limits = Limits { fuel_base, fuel_per_node: 0, ..Limits::default() };
        Sandbox::new(limits)
            .and_then(|sandbox| sandbox.built_in())
            .is_ok_and(|decider| decider.reconcile(&snapshot).is_ok())
    };
    let (mut low, mut high) = (0, 50_000_000);
    assert!(enough(high) && !enough(low));
    while high - low > 1 {
        let middle = low.midpoint(high);
        if enough(middle) { high = middle } else { low = middle }
    }
    for _ in 0..5 {
        assert!(enough(high) && !enough(low), "{low} was too little and {high} enough");
    }
}

// Plans that are the engine's to refuse.

#[test]
fn plans_that_break_the_contract_are_refused_whole() {
    let snapshot = fleet(20);
    let refusal = |bytes| {
        let decider = load(bytes);
        let plan = decider.reconcile(&snapshot).unwrap();
        check_plan(&plan, &snapshot, decider.description().rules.len()).unwrap_err()
    };
    assert!(matches!(refusal(guests::UNKNOWN_NODES), PlanError::UnknownNode { node: 4_000_000, .. }));
    assert!(matches!(refusal(guests::STALE_ATTEMPTS), PlanError::StaleAttempt { .. }));
    assert!(matches!(refusal(guests::TWO_DECISIONS), PlanError::Twice { .. }));
    assert!(matches!(refusal(guests::ILLEGAL_VERB), PlanError::Illegal { .. }));
    assert!(matches!(refusal(guests::NO_DECISIONS), PlanError::Missing { .. }));
    assert!(matches!(refusal(guests::UNKNOWN_VERB), PlanError::UnknownCode { what: "verb", code: 255, .. }));
    assert!(matches!(refusal(guests::UNKNOWN_HOLD), PlanError::UnknownCode { what: "hold", code: 255, .. }));
    assert!(matches!(refusal(guests::UNKNOWN_RULE), PlanError::UnknownRule { rule: 255, .. }));
    assert!(matches!(refusal(guests::UNEVEN_COLUMNS), PlanError::Uneven { .. }));
}

#[test]
fn a_decider_may_disagree_with_the_built_in_one() {
    let odd = load(guests::ODD_INSTANTS);
    let mut snapshot = fleet(20);
    assert_eq!(odd.reconcile(&snapshot).unwrap(), decider::reconcile(&snapshot));
    snapshot.now_ms += 1;
    assert_ne!(odd.reconcile(&snapshot).unwrap(), decider::reconcile(&snapshot));
}

// Nothing survives a call.

#[test]
fn a_guest_that_counts_its_calls_counts_one_for_ever() {
    let counts = load(guests::COUNTS_CALLS);
    for call in 0..1_000 {
        let plan = counts.reconcile(&fleet(call % 3)).unwrap();
        assert_eq!(plan.wake_at_ms, 1 | 1 << 16 | 1 << 32, "call {call}");
    }
}

#[test]
fn a_guest_that_counts_in_globals_tables_and_segments_counts_one_for_ever() {
    let sandbox = sandbox();
    let counts = sandbox.load(guests::COUNTS_ELSEWHERE).unwrap();
    let built_in = sandbox.built_in().unwrap();
    for call in 0..500 {
        assert_eq!(counts.reconcile(&fleet(call % 3)).unwrap().wake_at_ms, 0x01_01_01_01_01, "call {call}");
        // Somebody else in the same slots of the pool.
        built_in.reconcile(&fleet(call % 7)).unwrap();
    }
}

#[test]
fn nothing_survives_beside_other_guests_in_the_same_pool() {
    let sandbox = sandbox();
    let counts = sandbox.load(guests::COUNTS_CALLS).unwrap();
    let others = [guests::MEMORY, guests::PANICS, guests::RECURSION].map(|bytes| sandbox.load(bytes).unwrap());
    for call in 0..30 {
        assert!(others[call % 3].reconcile(&fleet(2)).is_err());
        assert_eq!(counts.reconcile(&fleet(2)).unwrap().wake_at_ms, 1 | 1 << 16 | 1 << 32, "call {call}");
    }
}

#[test]
fn a_thousand_calls_give_one_plan_byte_for_byte() {
    let decider = sandbox().built_in().unwrap();
    let snapshot = fleet(200);
    let first = serde_json::to_vec(&decider.reconcile(&snapshot).unwrap()).unwrap();
    for call in 0..1_000 {
        let plan = serde_json::to_vec(&decider.reconcile(&snapshot).unwrap()).unwrap();
        assert!(plan == first, "call {call}");
    }
}

// What the host shows and how it asks.

#[test]
fn inspection_names_the_decider() {
    let inspection = sandbox().built_in().unwrap().inspect();
    assert_eq!(inspection.digest, digest(decider_component()));
    assert!(inspection.digest.starts_with("sha256:") && inspection.digest.len() == 71);
    assert_eq!(inspection.name, "ladder");
    assert_eq!(inspection.contract, decider::CONTRACT);
    assert_eq!(inspection.imports, Vec::<String>::new());
    assert_eq!(inspection.exports, ["homeostat:decider/policy@1.1.0"]);
    assert_eq!(inspection.rules, decider::describe().rules);
    assert_eq!(inspection.size_bytes, decider_component().len() as u64);
    serde_json::to_string(&inspection).unwrap();
}

fn decider_component() -> &'static [u8] {
    homeostat::sandbox::BUILT_IN
}

#[tokio::test(flavor = "current_thread")]
async fn a_spinning_guest_does_not_wedge_the_runtime() {
    let limits = Limits { fuel_base: u64::MAX, wall_clock_ms: 3_000, ..Limits::default() };
    let sandbox = Sandbox::new(limits).unwrap();
    let spin = Arc::new(sandbox.load(guests::SPIN).unwrap());
    let built_in = Arc::new(sandbox.built_in().unwrap());
    let thread = DeciderThread::start().unwrap();
    let snapshot = Arc::new(fleet(3));
    let asked = thread.reconcile(spin.clone(), snapshot.clone());
    tokio::pin!(asked);
    // A timer runs out before the guest is stopped: the runtime's thread was free.
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut asked).await.is_err(), "it answered");
    assert_eq!(asked.await.unwrap_err().class, "wall-clock");
    // Another decider for the next call, on the same thread.
    assert_eq!(thread.reconcile(built_in, snapshot.clone()).await.unwrap(), decider::reconcile(&snapshot));
}
