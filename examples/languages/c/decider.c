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
    {"R18", "A ready node whose template changed stays as it is while its group's rollout is paused."},
    {"R19", "A ready node whose template changed waits while as many of its group are unavailable as may be."},
    {"R20", "While too many of a group's nodes fail, no ready node is replaced and destroyed ones restart one at a time."},
    {"R21", "Nothing is made in a group while a person or a guard holds that back."},
    {"R22", "Nothing that has not failed is ended in a group while a person or a guard holds that back."},
};
const unsigned POLICY_RULE_COUNT = sizeof POLICY_RULES / sizeof POLICY_RULES[0];

static decision_t contradiction(void) { return hold(17, A_PERSON, 0); }

static bool circuit_is_open(const group_t *group) {
    return group->max_failing.is_some && group->failing > group->max_failing.val;
}

// Whether the group's budget has a place left for replacing this ready node.
static bool has_place(const node_t *node, const group_t *group) {
    if (!group->max_unavailable.is_some) return true;
    uint32_t most = group->max_unavailable.val, needed = group->count > most ? group->count - most : 0;
    return group->available > needed && node->turn < group->available - needed;
}

// The decision for one node: a function of the node, its group and the instant alone.
decision_t decide(const node_t *node, const snapshot_t *snapshot) {
    uint64_t now = snapshot->now_ms;
    bool vacant = node->stage == VACANT, active = node->intent == ACTIVE, idle = node->pending == NO_OPERATION;
    bool known = node->stage <= DESTROYED && node->intent <= DELETING && node->ambiguous <= DESTROY_LEASE &&
                 node->live <= (LEASE | ENDPOINT | SESSION);
    if (!known || (node->attempt == 0) != vacant) return contradiction();

    const group_t *group = group_of(node, snapshot);
    uint8_t pauses = group ? group->pauses : 0;
    bool desired = node->desired_template != NO_INDEX, drifted = desired && node->desired_template != node->template;
    bool lease = node->live & LEASE, endpoint = node->live & ENDPOINT, session = node->live & SESSION;
    // A create or a bootstrap that may have happened has to be adopted before anything is destroyed.
    bool create_in_doubt = node->ambiguous == CREATE_LEASE, bootstrap_in_doubt = node->ambiguous == START_BOOTSTRAP;
    bool sure = !create_in_doubt && !bootstrap_in_doubt;

    if (vacant) {
        bool empty = active && idle && sure && !lease && !endpoint && !session;
        if (!desired || !empty) return contradiction();
        return pauses & MAKING ? hold(21, A_PERSON, 0) : act(0, DO_INSERT);
    }
    if (node->stage == DESTROYED) {
        if (!idle || !sure || lease || session) return contradiction();
        if (!desired) return act(1, DO_REAP);
        if (node->restart_at > now) return hold(3, AN_INSTANT, node->restart_at);
        if (pauses & MAKING) return hold(21, A_PERSON, 0);
        // While the circuit is open, one at a time is tried.
        bool tried = group && node->turn == 0 && group->trying == 0;
        if (group && !drifted && circuit_is_open(group) && !tried) return hold(20, A_CIRCUIT, 0);
        return act(2, DO_RESTART);
    }

    // What drifted is kept while the rollout is paused: it goes on with the template it has.
    bool kept = drifted && (pauses & ROLLOUT), ready = node->stage == DORMANT || node->stage == HANDED_OFF;
    if (active && drifted && ready && group) {
        if (kept) return hold(18, A_PERSON, 0);
        if (circuit_is_open(group)) return hold(20, A_CIRCUIT, 0);
        if (!has_place(node, group)) return hold(19, A_BUDGET, 0);
    }
    if (active && node->stage == FAILED) return act(4, DO_BEGIN_DELETE);
    if (active && (!desired || (drifted && !kept))) {
        return pauses & ENDING ? hold(22, A_PERSON, 0) : act(4, DO_BEGIN_DELETE);
    }
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
        if (bootstrap_in_doubt || lease || endpoint || session) return contradiction();
        return sure && (pauses & MAKING) ? hold(21, A_PERSON, 0) : act(12, DO_CREATE_LEASE);
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
