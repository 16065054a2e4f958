//! Deliberate defects, one line each, with the property that each breaks: what the checkers are shown to catch. Off outside
//! tests: without the feature `mutations` none can be switched on.

macro_rules! mutations {
    ($($what:literal $mutation:ident: $($property:literal)|+;)+) => {
        /// One way to break the engine, the ledger, recovery, or the decider that a simulation asks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Mutation { $(#[doc = $what] $mutation,)+ }

        impl Mutation {
            /// Every one.
            pub const ALL: &'static [Mutation] = &[$(Mutation::$mutation),+];

            /// What is wrong.
            pub const fn what(self) -> &'static str { match self { $(Mutation::$mutation => $what,)+ } }

            /// The properties that it breaks; which of them is noticed first depends on the run.
            pub const fn breaks(self) -> &'static [&'static str] { match self { $(Mutation::$mutation => &[$($property),+],)+ } }
        }
    };
}

mutations! {
    // The fifteen that `tests/mutations.rs` shows, one a safety property.
    "An operation leaves before its record." SubmitBeforeRecord: "S1";
    "A second operation is dispatched while one is pending." DispatchTwice: "S2" | "S1";
    "An attempt id is given out twice." ReuseAttempt: "S3" | "S8";
    "A superseded attempt's result is folded into its successor." FoldSuperseded: "S4";
    "A node is called destroyed as soon as its deletion begins." DestroyedTooEarly: "S5";
    "A failed destroy forgets the lease." ForgetLease: "S6";
    "What was ambiguous is forgotten when deletion begins." ForgetAmbiguous: "S7";
    "A failed attempt is replaced before it is cleaned up." ReplaceBeforeCleanUp: "S8" | "S6" | "S7";
    "Scale-down removes the lowest indices." ScaleDownLowest: "S9";
    "A lower generation is accepted." AcceptOlderGeneration: "S10";
    "A pass over a settled node changes it all the same." RestlessPass: "S11" | "L4";
    "What is decided depends on how many nodes are in the snapshot." DecideByCompany: "S12" | "L1" | "SPEC 6";
    "A result that overtakes an older attempt's is dropped." DropOvertaking: "S13";
    "An empty listing is believed." BelieveAbsence: "S14" | "S6";
    "What bears another run's label is reaped." ReapForeign: "S15";
    // Folds: what an outcome leaves behind (SPEC 6, 7).
    "Nobody asks what became of an ambiguous operation." NoDoubt: "S7";
    "A success leaves the doubt about the same operation." DoubtSurvivesSuccess: "L4" | "L1" | "S7" | "SPEC 4" | "S8";
    "A failure does not back off." NoBackoff: "SPEC 6";
    "Retry-After is ignored." IgnoreRetryAfter: "SPEC 6";
    "A failed attempt restarts at once." NoRestartBackoff: "SPEC 6";
    "A replacement does not inherit the failures in a row." RestartForgetsFailures: "SPEC 6";
    "Reaching ready does not reset the failures in a row." ReadyKeepsFailures: "SPEC 6";
    "Not ready yet counts as a failure." CountNotReady: "SPEC 6";
    "Nobody waits between two looks at an endpoint." NoProbeWait: "SPEC 6";
    "A stage is entered without a deadline." NoStageDeadline: "L4";
    "A stage's deadline passes and nothing follows." IgnoreStageDeadline: "L1" | "L4";
    "An exit status of a ready node is ignored." IgnoreDeath: "SPEC 6";
    "A session that is closed without evidence is a death." BelieveClosed: "S14";
    "A refusal for good is retried." RefusedKeepsClimbing: "SPEC 6";
    "A failed cancel forgets the session." FailedCancelForgets: "S6";
    "A cancel that worked keeps the session." CancelKeepsSession: "L1" | "L4";
    "A destroy that worked keeps the lease." DestroyKeepsLease: "L1" | "L4";
    "A windowed create in doubt is settled without its window." SettleWithoutWindow: "S8";
    "A windowed create in doubt is settled by creating again." SettleByCreating: "S8";
    "The retry of a create in doubt sends something else." OtherRequestOnRetry: "SPEC 7";
    // The ledger: results, deadlines, answers.
    "A result of the attempt's earlier operation ends its present one." FoldLateResult: "S2" | "S7" | "S6" | "S8" | "S1";
    "The executor's answer that it gave up is ignored." IgnoreAnswer: "L1" | "L4";
    "The executor is never asked." NeverAsk: "L1" | "L4";
    "An operation is forgotten when its deadline passes." ForgetAtDeadline: "S2" | "S7" | "S8";
    "The ledger discards what ends an operation that was asked about." LedgerDiscardsAsked: "L1" | "L4";
    "A deadline that is due when another input comes is lost." LoseDueTimer: "L1" | "L4";
    "An operation's deadline is not armed." NoDeadlineTimer: "L1" | "L4";
    // Passes.
    "A plan is not validated." SkipValidation: "S5" | "S6" | "S7" | "S8" | "S9" | "S2" | "L4" | "L1" | "S4" | "S3";
    "A decision is applied though its node has changed meanwhile." ApplyStale: "SPEC 6" | "S1" | "S2" | "S3" | "S5" | "S6" | "S7" | "S8" | "S9" | "L4";
    "A plan of the decider before the swap is applied under the one after it." KeepPassAtSwap: "SPEC 11";
    "A node for which the decider failed is never tried again." QuarantineForEver: "L1" | "L4";
    "A pass for which the decider failed is not made again." DropFailedPass: "L1" | "L4";
    "A drifted template is changed in place." ChangeInPlace: "SPEC 2" | "L4" | "L1";
    "A restart uses the old template." RestartOldTemplate: "L1" | "L4";
    "A reaped node stays." ReapNothing: "L4" | "L1";
    "The intent is not changed when deletion begins." KeepIntent: "L4" | "L1";
    "An operation in flight is forgotten when deletion begins." DeleteForgetsPending: "S2" | "S6" | "S7" | "S8" | "L1";
    "A slot that is removed from the shape stays desired." KeepUndesired: "S9";
    "A shape of another run is accepted." AcceptOtherRun: "S15";
    "Changed content at the same generation is accepted." AcceptSameGeneration: "S10";
    // Listings and recovery.
    "What bears a retired attempt's label is left." NoReap: "L1" | "L3";
    "What a node holds is reaped." ReapHeld: "S2" | "S9" | "L1" | "S7" | "S6";
    "After a restart, what bears an attempt beyond the fence is adopted." AdoptStrangers: "S15" | "L1";
    "After a restart, operations are numbered from 1 again." IgnoreEpoch: "S3";
    "The fence of attempt ids is not made durable." FenceNotRecorded: "S3" | "S8" | "S15" | "L1";
    "After a restart, earlier attempts are strangers." ForgetInherited: "L1" | "L3" | "S15";
    "What is adopted is taken for new." AdoptAsNew: "L4" | "S8" | "SPEC 4";
    "A restart forgets what was pending." RestartForgetsPending: "S7" | "S8" | "S2" | "S6";
    "Effects leave before the journal is synced." SyncLeftOut: "S3" | "S8" | "S7" | "S2" | "S15" | "L1";
    // Orders, pauses and guards.
    "A pause holds nothing." PauseIgnored: "SPEC 10";
    "A resumption does not make a pass." ResumeDoesNotWake: "L4" | "L1";
    "A guard does not count what it lets through." GuardDoesNotCount: "SPEC 10";
    "A guard's pause holds clean-ups that have begun." GuardHoldsCleanUps: "SPEC 10";
    "A restart forgets what the guards have counted." RestartForgetsWindows: "SPEC 10";
    "Live resources are not counted." LiveNotCounted: "SPEC 10";
    "A group's destroyed slots are not counted." ShareNotCounted: "SPEC 10";
    "A group that is scaled up gets the indices back that were destroyed." RetiredReused: "S9";
    "A kill counts as a failure." KillCounts: "SPEC 10";
    "An order to destroy one slot removes the highest." DestroyTakesHighest: "S9";
    // Rollouts.
    "A group's budget is not shown to the decider." BudgetNotShown: "B1";
    "Each node that waits to be replaced is told that it is first." EveryTurnIsFirst: "B1" | "B2";
    "Failing nodes are not counted." FailingNotCounted: "B2";
    "An attempt of a failing node is always said to be under way." TryingForEver: "L1" | "L4";
    "A rollout goes on though the fleet file pauses it." RolloutPauseIgnored: "B1";
    "Surge nodes are never taken back." SurgeStays: "L1" | "L4";
    // The decider that the simulation asks.
    "The decider cleans up before what is in doubt is settled." DeciderSkipsDoubt: "S7";
    "The decider starts a new attempt before the old one is cleaned up." DeciderRestartsEarly: "S8";
    "The decider answers differently at odd milliseconds." DeciderOddMilliseconds: "S11";
    "The decider scales down the lowest index." DeciderScalesDownLowest: "S9";
    "The decider does not wait for a backoff." DeciderIgnoresBackoff: "SPEC 6";
    "The decider destroys before it cancels." DeciderDestroysFirst: "S6";
    "The decider takes a drifted node for a good one." DeciderIgnoresDrift: "L1" | "L4";
    "The decider never restarts." DeciderNeverRestarts: "L1" | "L4";
    "The decider acts while an operation is pending." DeciderIgnoresPending: "S2";
    "The decider decides for the first node only." DeciderForgetsNodes: "L4";
    "The decider's choice depends on who else is in the snapshot." DeciderByCompany: "S12" | "S11" | "L4" | "L1";
    "The decider deletes what is ready." DeciderDeletesReady: "S9";
}
