//! The guarantees of SPEC 13 in words, for reports that name one.

/// Safety after every step, and liveness once faults stop.
const PROPERTIES: &[(&str, &str)] = &[
    ("S1", "no effect without a durable pending record made before it"),
    ("S2", "at most one pending operation per node; at most one running per attempt"),
    ("S3", "attempt and operation ids are never reused"),
    ("S4", "nothing from a superseded attempt changes a later one"),
    ("S5", "a destroyed node holds no lease, session or pending operation"),
    ("S6", "failed clean-up keeps every live fact: no resource is forgotten while it may exist"),
    ("S7", "an ambiguous create is adopted before anything destructive"),
    ("S8", "a replacement starts only after its predecessor is cleaned up; at most one live resource per external key"),
    ("S9", "scale-down removes only the highest indices; no desired, healthy, undrifted node is ever destroyed"),
    ("S10", "the observed generation never goes back; changed content at the same generation is refused"),
    ("S11", "the same snapshot gives the same plan, and while nothing changes and nothing is due it stays the same"),
    ("S12", "deciding a subset of the nodes gives exactly the whole plan's decisions for that subset"),
    ("S13", "the order in which independent inputs arrive does not change where the fleet settles"),
    ("S14", "absence is not evidence: nothing follows from an empty, failed, partial or stale view"),
    ("S15", "nothing that is not ours is ever touched"),
    ("L1", "once faults stop, the fleet converges to its latest shape within a bound"),
    ("L2", "and then stays there"),
    ("L3", "every resource is ready, being cleaned up, or reported as an orphan: none leaks"),
    ("L4", "a node is never stuck: it advances, or it holds with a reason and an end that will come"),
];

/// What a property says; `None` for an id that is none of SPEC 13.
pub fn sentence(id: &str) -> Option<&'static str> {
    PROPERTIES.iter().find(|(known, _)| *known == id).map(|(_, sentence)| *sentence)
}
