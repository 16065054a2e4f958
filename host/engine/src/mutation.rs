//! Deliberate defects, one a safety property: what the invariant checkers are shown to catch. Off outside tests: without
//! the feature `mutations` none can be switched on.

/// One way to break the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// S1: an operation leaves before its record.
    SubmitBeforeRecord,
    /// S2: a second operation is dispatched while one is pending.
    DispatchTwice,
    /// S3: an attempt id is given out twice.
    ReuseAttempt,
    /// S4: a superseded attempt's result is folded into its successor.
    FoldSuperseded,
    /// S5: a node is called destroyed as soon as its deletion begins.
    DestroyedTooEarly,
    /// S6: a failed destroy forgets the lease.
    ForgetLease,
    /// S7: what was ambiguous is forgotten when deletion begins.
    ForgetAmbiguous,
    /// S8: a failed attempt is replaced before it is cleaned up.
    ReplaceBeforeCleanUp,
    /// S9: scale-down removes the lowest indices.
    ScaleDownLowest,
    /// S10: a lower generation is accepted.
    AcceptOlderGeneration,
    /// S11: a pass over a settled node changes it all the same.
    RestlessPass,
    /// S12: what is decided depends on how many nodes are in the snapshot.
    DecideByCompany,
    /// S13: a result that overtakes an older attempt's is dropped.
    DropOvertaking,
    /// S14: an empty listing is believed.
    BelieveAbsence,
    /// S15: what bears another run's label is reaped.
    ReapForeign,
}
