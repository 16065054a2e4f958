// The built-in ladder, rule for rule, in C. Change `decide` to make a policy of your own.
#include "homeostat.h"

const char POLICY_NAME[] = "ladder-c", POLICY_VERSION[] = "0.1.0";

const char *const POLICY_RULES[][2] = {
    {"R0", "A desired slot that no node holds gets a fresh attempt."},
    {"R1", "A destroyed node whose slot is not desired is reaped."},
    {"R2", "A destroyed node whose slot is desired restarts, with a fresh attempt and the latest template."},
    {"R3", "A destroyed node whose slot is desired waits until its restart is due."},
    {"R4", "An active node that is not desired, drifted or failed begins to be deleted."},
    {"R5", "A node with a pending operation waits for its result or its deadline."},
    {"R6", "A deleting node with an ambiguous create or bootstrap dispatches that same operation again, to adopt."},
    {"R7", "A deleting node's live bootstrap session is cancelled."},
    {"R8", "A deleting node's live lease is destroyed."},
    {"R9", "A deleting node of which nothing is left is destroyed."},
    {"R10", "A node waits until its next operation or its next look is due."},
    {"R11", "A ready node is steady."},
    {"R12", "A node without a lease creates one."},
    {"R13", "A node with a lease and no endpoint looks it up."},
    {"R14", "A joined node with a live session has converged."},
    {"R15", "A node whose bootstrap runs waits for its observations, until the stage's deadline."},
    {"R16", "A node with a lease and an endpoint and no session starts its bootstrap."},
    {"R17", "A node whose facts contradict each other, or are unknown, waits for a person and is reported."},
};
const unsigned POLICY_RULE_COUNT = sizeof POLICY_RULES / sizeof POLICY_RULES[0];

static decision_t contradiction(void) { return hold(17, A_PERSON, 0); }

// The decision for one node: a function of the node and the instant alone.
decision_t decide(const node_t *node, const snapshot_t *snapshot) {
    uint64_t now = snapshot->now_ms;
    bool vacant = node->stage == VACANT, active = node->intent == ACTIVE, idle = node->pending == NO_OPERATION;
    bool known = node->stage <= DESTROYED && node->intent <= DELETING && node->ambiguous <= DESTROY_LEASE &&
                 node->live <= (LEASE | ENDPOINT | SESSION);
    if (!known || (node->attempt == 0) != vacant) return contradiction();

    bool desired = node->desired_template != NO_INDEX, drifted = desired && node->desired_template != node->template;
    bool lease = node->live & LEASE, endpoint = node->live & ENDPOINT, session = node->live & SESSION;
    // A create or a bootstrap that may have happened has to be adopted before anything is destroyed.
    bool create_in_doubt = node->ambiguous == CREATE_LEASE, bootstrap_in_doubt = node->ambiguous == START_BOOTSTRAP;
    bool sure = !create_in_doubt && !bootstrap_in_doubt;

    if (vacant) {
        bool empty = active && idle && sure && !lease && !endpoint && !session;
        return desired && empty ? act(0, DO_INSERT) : contradiction();
    }
    if (node->stage == DESTROYED) {
        if (!idle || !sure || lease || session) return contradiction();
        if (!desired) return act(1, DO_REAP);
        return node->restart_at <= now ? act(2, DO_RESTART) : hold(3, AN_INSTANT, node->restart_at);
    }

    if (active && (!desired || drifted || node->stage == FAILED)) return act(4, DO_BEGIN_DELETE);
    if (!idle) return hold(5, A_RESULT, node->pending_deadline);
    bool due = node->next_effect_at <= now;

    if (!active) {
        if (sure && !lease && !session) return act(9, DO_MARK_DESTROYED);
        if (!due) return hold(10, AN_INSTANT, node->next_effect_at);
        if (create_in_doubt) return act(6, DO_CREATE_LEASE);
        if (bootstrap_in_doubt) return lease && endpoint ? act(6, DO_START_BOOTSTRAP) : contradiction();
        return session ? act(7, DO_CANCEL_BOOTSTRAP) : act(8, DO_DESTROY_LEASE);
    }

    if (!due) return hold(10, AN_INSTANT, node->next_effect_at);
    if (node->probe_at > now) return hold(10, AN_INSTANT, node->probe_at);

    switch (node->stage) {
    case DORMANT:
    case HANDED_OFF:
        return sure && lease ? hold(11, A_CHANGE, 0) : contradiction();
    case NEW:
    case LEASE_REQUESTED:
        return !bootstrap_in_doubt && !lease && !endpoint && !session ? act(12, DO_CREATE_LEASE) : contradiction();
    case JOINED:
        return sure && lease && session ? act(14, DO_CONVERGENCE_OBSERVED) : contradiction();
    case BOOTSTRAP_RUNNING:
        return sure && lease && session ? hold(15, AN_OBSERVATION, node->stage_deadline) : contradiction();
    case LEASE_CREATED:
        if (sure && lease && !endpoint && !session) return act(13, DO_LOOKUP_ENDPOINT);
        // With an endpoint it is as good as known.
        __attribute__((fallthrough));
    case ENDPOINT_KNOWN:
        return !create_in_doubt && lease && endpoint && !session ? act(16, DO_START_BOOTSTRAP) : contradiction();
    default:
        return contradiction();
    }
}
