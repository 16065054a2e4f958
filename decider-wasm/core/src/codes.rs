//! The contract's code tables (`wit/decider.wit`) as closed enums. A byte that is not in a table is `None`: unknown
//! codes are handled, never assumed away.

macro_rules! codes {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $code:literal, $label:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
        #[repr(u8)]
        pub enum $name { $($(#[$vmeta])* $variant = $code,)+ }

        impl $name {
            /// Every value, in the order of the codes.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The value of a code on the wire; `None` when the table does not list it.
            #[inline]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some($name::$variant),)+ _ => None }
            }

            /// The code on the wire.
            #[inline]
            pub const fn code(self) -> u8 { self as u8 }

            /// The name people read.
            pub const fn label(self) -> &'static str {
                match self { $($name::$variant => $label,)+ }
            }
        }
    };
}

codes! {
    /// Where an attempt stands (SPEC 3).
    Stage {
        /// The slot is desired and no node holds it.
        Vacant = 0, "vacant";
        /// Authorised, nothing asked of the provider yet.
        New = 1, "new";
        /// A create has been sent.
        LeaseRequested = 2, "lease-requested";
        /// The provider holds a resource for it.
        LeaseCreated = 3, "lease-created";
        /// The resource has an address.
        EndpointKnown = 4, "endpoint-known";
        /// The boot command runs.
        BootstrapRunning = 5, "bootstrap-running";
        /// The join probe succeeded.
        Joined = 6, "joined";
        /// Reserved; counts as ready.
        HandedOff = 7, "handed-off";
        /// Ready and steady.
        Dormant = 8, "dormant";
        /// The attempt failed; it can only be cleaned up.
        Failed = 9, "failed";
        /// Nothing is left of it.
        Destroyed = 10, "destroyed";
    }
}

impl Stage {
    /// Whether the stage counts as ready (SPEC 3).
    pub const fn is_ready(self) -> bool {
        matches!(self, Stage::HandedOff | Stage::Dormant)
    }
}

codes! {
    /// What is wanted of an attempt.
    Intent {
        /// Bring it up and keep it.
        Active = 0, "active";
        /// Clean it up; there is no way back.
        Deleting = 1, "deleting";
    }
}

codes! {
    /// The kinds of operations. Code 0 on the wire is "none" and is not a kind.
    OperationKind {
        /// Ask the provider for a resource.
        CreateLease = 1, "create-lease";
        /// Ask where the resource can be reached.
        LookupEndpoint = 2, "lookup-endpoint";
        /// Run the boot command.
        StartBootstrap = 3, "start-bootstrap";
        /// Stop what the boot command started.
        CancelBootstrap = 4, "cancel-bootstrap";
        /// Give the resource back.
        DestroyLease = 5, "destroy-lease";
    }
}

codes! {
    /// How far a bootstrap has come, as last reported.
    Progress {
        /// Nothing reported yet.
        None = 0, "none";
        /// Connecting.
        Connect = 1, "connect";
        /// Checking what was booted.
        BootCheck = 2, "boot check";
        /// Starting the command.
        Start = 3, "start";
        /// Waiting for the join probe.
        Join = 4, "join";
        /// The join probe held.
        Converged = 5, "converged";
        /// Connecting failed.
        ConnectFailed = 6, "connect failed";
        /// The boot check failed.
        BootCheckFailed = 7, "boot check failed";
        /// Starting failed.
        StartFailed = 8, "start failed";
        /// Joining failed.
        JoinFailed = 9, "join failed";
        /// It joined and did not converge.
        ConvergedFailed = 10, "convergence failed";
    }
}

codes! {
    /// What to do with a node.
    Verb {
        /// Nothing, until what the hold names.
        Hold = 0, "hold";
        /// Authorise a first attempt for a vacant slot.
        Insert = 1, "insert";
        /// Forget a destroyed node whose slot is not desired.
        Reap = 2, "reap";
        /// Authorise a fresh attempt with the latest template.
        Restart = 3, "restart";
        /// Turn the intent to deleting.
        BeginDelete = 4, "begin-delete";
        /// Record that nothing is left.
        MarkDestroyed = 5, "mark-destroyed";
        /// Record that a joined node is ready.
        ConvergenceObserved = 6, "convergence-observed";
        /// Dispatch a create.
        CreateLease = 7, "create-lease";
        /// Dispatch a look-up of the endpoint.
        LookupEndpoint = 8, "lookup-endpoint";
        /// Dispatch the bootstrap.
        StartBootstrap = 9, "start-bootstrap";
        /// Dispatch the bootstrap's cancellation.
        CancelBootstrap = 10, "cancel-bootstrap";
        /// Dispatch the destruction of the lease.
        DestroyLease = 11, "destroy-lease";
    }
}

impl Verb {
    /// The operation that the verb dispatches; `None` for a hold or a driver transition.
    pub const fn operation(self) -> Option<OperationKind> {
        match self {
            Verb::CreateLease => Some(OperationKind::CreateLease),
            Verb::LookupEndpoint => Some(OperationKind::LookupEndpoint),
            Verb::StartBootstrap => Some(OperationKind::StartBootstrap),
            Verb::CancelBootstrap => Some(OperationKind::CancelBootstrap),
            Verb::DestroyLease => Some(OperationKind::DestroyLease),
            Verb::Hold
            | Verb::Insert
            | Verb::Reap
            | Verb::Restart
            | Verb::BeginDelete
            | Verb::MarkDestroyed
            | Verb::ConvergenceObserved => None,
        }
    }
}

codes! {
    /// What ends a hold. Code 0 on the wire is "not a hold" and is not a kind.
    HoldKind {
        /// An instant.
        Instant = 1, "an instant";
        /// The pending operation's result, or its deadline.
        Result = 2, "the operation's result";
        /// An observation of the bootstrap, or the stage's deadline.
        Observation = 3, "an observation of the bootstrap";
        /// A change of the desired state, or the node's death.
        Steady = 4, "a change";
        /// A person: the facts contradict each other, or somebody has paused.
        Person = 5, "a person";
        /// A place in the group's budget: others of the group are unavailable.
        Budget = 6, "a place in the group's budget";
        /// The group's circuit: too many of its nodes fail.
        Circuit = 7, "the group's circuit";
    }
}

/// Bits of the `live` column.
pub mod live {
    /// The lease is live.
    pub const LEASE: u8 = 1;
    /// The endpoint is known.
    pub const ENDPOINT: u8 = 2;
    /// The bootstrap session is live.
    pub const SESSION: u8 = 4;
}

/// Bits of a group's `pauses`.
pub mod pauses {
    /// What would be made is held.
    pub const CREATES: u8 = 1;
    /// What would be ended is held.
    pub const DESTROYS: u8 = 2;
    /// Replacing for drift is held.
    pub const ROLLOUT: u8 = 4;
}

/// Bits of the `marks` column.
pub mod marks {
    /// The slot is beyond the group's count: there for a rollout.
    pub const SURGE: u8 = 1;
}

/// "None" in an index column.
pub const NO_INDEX: u32 = u32::MAX;
