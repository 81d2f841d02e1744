"""Budgets, the running pass, preemption, drafts."""

from __future__ import annotations

from conformance.selftest.sabotage import Sabotage

SCHEDULER = "reference.scheduler"
LIVE_REQUEST = "reference.live_request"

RUNNING: tuple[Sabotage, ...] = (
    # --- budget and other limits of a step -----------------------------------------------------
    Sabotage("budget-never-charged", "BUD-5", SCHEDULER, "step.budget -= encoding.tokens", "step.budget -= 0"),
    Sabotage(
        "budget-charged-one-short",
        "BUD-5",
        SCHEDULER,
        "budget -= encoding.tokens",
        "budget -= encoding.tokens - 1",
    ),
    Sabotage(
        "budget-one-too-large",
        "BUDGET",
        SCHEDULER,
        "_Step(self.config.max_num_batched_tokens,",
        "_Step(self.config.max_num_batched_tokens + 1,",
    ),
    Sabotage(
        "budget-one-too-small",
        "RUN-1",
        SCHEDULER,
        "len(self.running) and step.budget > 0",
        "len(self.running) and step.budget > 1",
    ),
    Sabotage(
        "running-not-cut-by-budget",
        "RUN-4",
        SCHEDULER,
        "self._chunk(demand, step.budget)",
        "self._chunk(demand, demand)",
    ),
    Sabotage(
        "running-not-cut-by-threshold",
        "RUN-4",
        SCHEDULER,
        "self._chunk(demand, step.budget)",
        "min(demand, step.budget)",
    ),
    Sabotage("threshold-ignored", "RUN-4", SCHEDULER, "if 0 < threshold < demand:", "if threshold < 0:"),
    Sabotage("threshold-one-too-large", "RUN-4", SCHEDULER, "demand = threshold", "demand = threshold + 1"),
    Sabotage(
        "model-length-one-too-long",
        "LENGTH",
        SCHEDULER,
        "self.config.max_model_len - live.computed)",
        "self.config.max_model_len - live.computed + 1)",
        trace="drafts-beyond-the-model",
    ),
    Sabotage(
        "model-length-one-too-short",
        "RUN-4",
        SCHEDULER,
        "self.config.max_model_len - live.computed)",
        "self.config.max_model_len - live.computed - 1)",
    ),
    # --- the running pass ----------------------------------------------------------------------
    Sabotage(
        "first-in-line-passed-over",
        "STARVE",
        SCHEDULER,
        "index = 0\n",
        "index = int(len(self.running) > 1)\n",
        trace="always-somebody-younger",
    ),
    Sabotage(
        "idle-request-holds-up-the-rest",
        "RUN-5",
        SCHEDULER,
        "index += 1\n                continue",
        "break",
        trace="idle-in-the-middle",
    ),
    Sabotage(
        "running-grant-names-whole-table",
        "RUN-8",
        SCHEDULER,
        "self._grant(step, live, encoding, taken)",
        "self._grant(step, live, encoding, live.table)",
    ),
    Sabotage(
        "grant-starts-one-early",
        "CONTIGUOUS",
        SCHEDULER,
        "start=start,",
        "start=start - (live.status is Status.RUNNING),",
    ),
    Sabotage("computed-not-advanced", "ADV-1", SCHEDULER, "live.computed = end", "live.computed = start"),
    Sabotage("computed-one-short", "ADV-1", SCHEDULER, "live.computed = end", "live.computed = end - 1"),
    Sabotage(
        "running-computes-unknown-token",
        "LAST",
        SCHEDULER,
        "len(live.drafts) - live.computed",
        "len(live.drafts) - live.computed + 1",
    ),
    # --- preemption ----------------------------------------------------------------------------
    Sabotage("victim-is-the-oldest", "PRE-1", SCHEDULER, "self.running.pop()", "self.running.pop(0)"),
    Sabotage(
        "victim-is-the-requester",
        "PRE-1",
        SCHEDULER,
        "self.running.pop()",
        "self.running.pop(self.running.index(live))",
    ),
    Sabotage(
        "victim-is-served-all-the-same",
        "RUN-7",
        SCHEDULER,
        "            if victim is live:\n                return None\n",
        "",
    ),
    Sabotage(
        "victim-goes-to-the-back",
        "PRE-3",
        SCHEDULER,
        "self.waiting.push_front(victim)",
        "self.waiting.append(victim)",
    ),
    Sabotage("victim-keeps-computed", "PRE-3", SCHEDULER, "victim.computed = 0", "pass"),
    Sabotage("victim-keeps-blocks", "PRE-3", SCHEDULER, "self.kv_cache.release(victim)", "pass"),
    Sabotage(
        "victim-keeps-items",
        "ENC-4",
        SCHEDULER,
        "self.encoder_cache.release_all(victim)",
        "pass",
        trace="encoder-kept-on-preemption",
    ),
    Sabotage(
        "victim-loses-drafts",
        "SPEC-5",
        SCHEDULER,
        "victim.computed = 0",
        "victim.computed, victim.drafts = 0, ()",
    ),
    Sabotage(
        "victim-counts-as-new",
        "ADM-13",
        SCHEDULER,
        "victim.status = Status.PREEMPTED",
        "victim.status = Status.WAITING",
    ),
    Sabotage("victim-not-reported", "PREEMPTED", SCHEDULER, "step.preempted.append(victim.request_id)", "pass"),
    # --- drafts --------------------------------------------------------------------------------
    Sabotage(
        "drafts-not-demanded",
        "RUN-3",
        SCHEDULER,
        "len(live.tokens) + len(live.drafts) - live",
        "len(live.tokens) - live",
    ),
    Sabotage("drafts-not-trimmed", "SPEC-2", LIVE_REQUEST, "self.drafts[:verified]", "self.drafts"),
    Sabotage(
        "drafts-trimmed-one-short",
        "SPEC-2",
        LIVE_REQUEST,
        "verified = end - len(self.tokens)",
        "verified = end - len(self.tokens) - 1",
    ),
    Sabotage("rollback-missing", "SPEC-4", SCHEDULER, "live.computed -= rejected", "live.computed -= 0"),
    Sabotage(
        "rollback-one-short",
        "SPEC-4",
        SCHEDULER,
        "len(grant.drafts) + 1 - len(sampled)",
        "len(grant.drafts) - len(sampled)",
    ),
    Sabotage(
        "rollback-of-all-drafts",
        "SPEC-4",
        SCHEDULER,
        "len(grant.drafts) + 1 - len(sampled)",
        "len(grant.drafts)",
    ),
    Sabotage(
        "drafts-outlive-their-step",
        "SPEC-2",
        SCHEDULER,
        "output.drafts.get(live.request_id, ())",
        "output.drafts.get(live.request_id, live.drafts)",
        trace="chunk-behind-drafts",
    ),
    Sabotage(
        "drafts-ignored",
        "SPEC-2",
        SCHEDULER,
        "if self.config.num_speculative_tokens > 0:",
        "if self.config.use_eagle:",
    ),
)
