// The contract in the hand of a C author: one node at a time, with names instead of codes. `wit/decider.wit` says what they mean.
#ifndef HOMEOSTAT_H
#define HOMEOSTAT_H
#include <stdbool.h>
#include <stdint.h>

#include "bindings/decider.h"

#define CONTRACT "1.1.0"
#define NO_INDEX UINT32_MAX

typedef exports_homeostat_decider_policy_snapshot_t snapshot_t;
typedef exports_homeostat_decider_policy_group_t group_t;
typedef exports_homeostat_decider_policy_rule_t rule_t;

enum stage { VACANT, NEW, LEASE_REQUESTED, LEASE_CREATED, ENDPOINT_KNOWN, BOOTSTRAP_RUNNING, JOINED, HANDED_OFF, DORMANT, FAILED, DESTROYED };
enum intent { ACTIVE, DELETING };
enum operation { NO_OPERATION, CREATE_LEASE, LOOKUP_ENDPOINT, START_BOOTSTRAP, CANCEL_BOOTSTRAP, DESTROY_LEASE };
enum live { LEASE = 1, ENDPOINT = 2, SESSION = 4 };
enum pauses { MAKING = 1, ENDING = 2, ROLLOUT = 4 };
enum verb {
    HOLD, DO_INSERT, DO_REAP, DO_RESTART, DO_BEGIN_DELETE, DO_MARK_DESTROYED, DO_CONVERGENCE_OBSERVED,
    DO_CREATE_LEASE, DO_LOOKUP_ENDPOINT, DO_START_BOOTSTRAP, DO_CANCEL_BOOTSTRAP, DO_DESTROY_LEASE,
};
enum ends { NOT_A_HOLD, AN_INSTANT, A_RESULT, AN_OBSERVATION, A_CHANGE, A_PERSON, A_BUDGET, A_CIRCUIT };

// One row of the snapshot's table. Codes are as on the wire: a newer host may send codes that are not listed above.
typedef struct {
    uint32_t node;
    uint64_t attempt;
    uint32_t group, slot;
    uint8_t stage, intent;
    uint32_t template, desired_template;
    uint8_t live, progress, pending, ambiguous;
    uint32_t failures;
    uint64_t pending_deadline, next_effect_at, probe_at, restart_at, stage_deadline;
    uint32_t turn;
    uint8_t marks;
} node_t;

// The node's group; NULL when it is gone from the shape.
static inline const group_t *group_of(const node_t *node, const snapshot_t *snapshot) {
    return node->group < snapshot->groups.len ? &snapshot->groups.ptr[node->group] : 0;
}

// What is decided for a node, and the number of the rule that it follows from.
typedef struct {
    uint8_t rule, verb, ends;
    uint64_t until;
} decision_t;

static inline decision_t act(uint8_t rule, enum verb verb) { return (decision_t){rule, verb, NOT_A_HOLD, 0}; }
static inline decision_t hold(uint8_t rule, enum ends ends, uint64_t until) { return (decision_t){rule, HOLD, ends, until}; }

// What a policy has to define.
extern const char POLICY_NAME[], POLICY_VERSION[];
extern const char *const POLICY_RULES[][2]; // id and sentence
extern const unsigned POLICY_RULE_COUNT;
decision_t decide(const node_t *node, const snapshot_t *snapshot);

#endif
