// From columns to rows and back. Nothing here decides anything.
#include "homeostat.h"

#include <stdlib.h>
#include <string.h>

// The generated bindings refer to an object file that tells the component's world; `homeostat decider componentize` tells it.
void __component_type_object_force_link_decider(void) {}

static decider_string_t string(const char *text) { return (decider_string_t){(uint8_t *)text, strlen(text)}; }

void exports_homeostat_decider_policy_describe(exports_homeostat_decider_policy_description_t *out) {
    rule_t *rules = malloc(POLICY_RULE_COUNT * sizeof(rule_t));
    for (unsigned at = 0; at < POLICY_RULE_COUNT; at++) {
        rules[at] = (rule_t){string(POLICY_RULES[at][0]), string(POLICY_RULES[at][1])};
    }
    *out = (exports_homeostat_decider_policy_description_t){
        .name = string(POLICY_NAME),
        .version = string(POLICY_VERSION),
        .contract = string(CONTRACT),
        .rules = {rules, POLICY_RULE_COUNT},
    };
}

void exports_homeostat_decider_policy_reconcile(snapshot_t *snapshot, exports_homeostat_decider_policy_plan_t *out) {
    exports_homeostat_decider_policy_nodes_t *in = &snapshot->nodes;
    size_t rows = in->node.len;
    uint8_t *rule = malloc(rows), *verb = malloc(rows), *ends = malloc(rows);
    uint64_t *until = malloc(rows * sizeof(uint64_t));
    uint64_t wake_at_ms = 0;
    for (size_t at = 0; at < rows; at++) {
        node_t node = {
            .node = in->node.ptr[at],
            .attempt = in->attempt.ptr[at],
            .group = in->group.ptr[at],
            .slot = in->slot.ptr[at],
            .stage = in->stage.ptr[at],
            .intent = in->intent.ptr[at],
            .template = in->template_.ptr[at],
            .desired_template = in->desired_template.ptr[at],
            .live = in->live.ptr[at],
            .progress = in->progress.ptr[at],
            .pending = in->pending.ptr[at],
            .ambiguous = in->ambiguous.ptr[at],
            .failures = in->failures.ptr[at],
            .pending_deadline = in->pending_deadline.ptr[at],
            .next_effect_at = in->next_effect_at.ptr[at],
            .probe_at = in->probe_at.ptr[at],
            .restart_at = in->restart_at.ptr[at],
            .stage_deadline = in->stage_deadline.ptr[at],
            .turn = in->turn.ptr[at],
            .marks = in->marks.ptr[at],
        };
        decision_t decision = decide(&node, snapshot);
        rule[at] = decision.rule;
        verb[at] = decision.verb;
        ends[at] = decision.ends;
        until[at] = decision.until;
        if (decision.until != 0 && (wake_at_ms == 0 || decision.until < wake_at_ms)) wake_at_ms = decision.until;
    }
    out->wake_at_ms = wake_at_ms;
    out->decisions.node = in->node;
    out->decisions.attempt = in->attempt;
    out->decisions.rule.ptr = rule;
    out->decisions.verb.ptr = verb;
    out->decisions.hold.ptr = ends;
    out->decisions.until.ptr = until;
    out->decisions.rule.len = out->decisions.verb.len = out->decisions.hold.len = out->decisions.until.len = rows;
}
