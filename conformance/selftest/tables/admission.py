"""Arrivals, the waiting pass, adapters, grammars, external tokens."""

from __future__ import annotations

from conformance.selftest.sabotage import Sabotage

SCHEDULER = "reference.scheduler"
QUEUE = "reference.waiting_queue"
LIMITS = "reference.limits"

ADMISSION: tuple[Sabotage, ...] = (
    # --- arrivals ------------------------------------------------------------------------------
    Sabotage(
        "duplicate-id-accepted",
        "ST-4",
        SCHEDULER,
        "if request.request_id in self.live:",
        "if not request.request_id:",
        trace="duplicate-id-accepted",
    ),
    Sabotage(
        "unservable-accepted",
        "PRG-1",
        SCHEDULER,
        "if needed > usable:",
        "if needed > needed:",
        trace="unservable-accepted",
    ),
    Sabotage(
        "fitting-request-refused",
        "PRG-1",
        LIMITS,
        "last_computed + config.lookahead",
        "last_computed + 1 + config.lookahead",
    ),
    Sabotage(
        "newcomer-jumps-the-queue",
        "ST-4",
        QUEUE,
        '"""A new arrival goes to the back (ST-4)."""\n',
        "self.push_front(request)\n",
    ),
    # --- who is examined -----------------------------------------------------------------------
    Sabotage("admits-after-preempting", "ADM-1", SCHEDULER, "if not step.preempted:", "if step.budget:"),
    Sabotage(
        "seats-one-too-many",
        "SEATS",
        SCHEDULER,
        "len(self.running) >= self.config",
        "len(self.running) > self.config",
    ),
    Sabotage(
        "seats-one-stays-empty",
        "ADM-2",
        SCHEDULER,
        "len(self.running) >= self.config",
        "len(self.running) + 1 >= self.config",
    ),
    Sabotage(
        "last-token-of-budget-wasted",
        "ADM-2",
        SCHEDULER,
        "while self.waiting and step.budget > 0:",
        "while self.waiting and step.budget > 1:",
    ),
    Sabotage(
        "misfit-is-overtaken",
        "ADM-12",
        SCHEDULER,
        "_admit(live, step):\n                break",
        "_admit(live, step):\n                skipped.append(self.waiting.pop_front())\n                continue",
    ),
    Sabotage(
        "skipped-hold-up-the-rest",
        "ADM-3",
        SCHEDULER,
        "skipped.append(self.waiting.pop_front())\n                continue",
        "break",
    ),
    Sabotage("skipped-return-reversed", "Q-3", QUEUE, "in reversed(skipped):", "in skipped:"),
    Sabotage(
        "skipped-go-to-the-back",
        "Q-3",
        QUEUE,
        "            self.push_front(request)",
        "            self.append(request)",
    ),
    Sabotage("skipped-are-lost", "STATE", SCHEDULER, "self.waiting.put_back(skipped)", "pass"),
    Sabotage("grammar-ignored", "ADM-3.1", SCHEDULER, "if not live.grammar_is_ready:", "if not live:"),
    Sabotage("grammar-never-ready", "ST-3", SCHEDULER, "live.grammar_is_ready = True", "live.grammar_is_ready = False"),
    Sabotage(
        "adapter-cap-ignored",
        "ADM-3.3",
        SCHEDULER,
        "return len(adapters) >= self.config.max_loras",
        "return False",
    ),
    Sabotage(
        "adapter-cap-one-too-large",
        "CAPS",
        SCHEDULER,
        "len(adapters) >= self.config",
        "len(adapters) > self.config",
    ),
    Sabotage(
        "adapters-of-this-step-only",
        "ADM-3.3",
        SCHEDULER,
        "adapters = {live.request.lora_id for live in self.running if live.request.lora_id}",
        "adapters: set[int] = set()",
        trace="adapters-of-scheduled-only",
    ),
    Sabotage("admitted-adapter-not-counted", "CAPS", SCHEDULER, "adapters.add(live.request.lora_id)", "pass"),
    Sabotage("base-model-counts-as-adapter", "ADM-3.3", SCHEDULER, "if adapter == 0 or adapter in", "if adapter in"),
    # --- what an admission gets ----------------------------------------------------------------
    Sabotage("admission-not-cut-by-budget", "ADM-8", SCHEDULER, "- start, step.budget)", "- start, len(live.tokens))"),
    Sabotage(
        "admission-not-cut-by-threshold",
        "ADM-8",
        SCHEDULER,
        "self._chunk(len(live.tokens) - start, step.budget)",
        "min(len(live.tokens) - start, step.budget)",
    ),
    Sabotage(
        "admission-demands-drafts",
        "ADM-6",
        SCHEDULER,
        "len(live.tokens) - start,",
        "len(live.tokens) + len(live.drafts) - start,",
    ),
    Sabotage(
        "admission-computes-unknown-token",
        "LAST",
        SCHEDULER,
        "len(live.tokens) - start,",
        "len(live.tokens) + 1 - start,",
    ),
    Sabotage(
        "empty-admission",
        "ADM-3.6",
        SCHEDULER,
        "if encoding.tokens == 0:\n            return",
        "if encoding.tokens < 0:\n            return",
        trace="encoder-cache",
    ),
    Sabotage(
        "admission-names-new-blocks-only",
        "OUT-2",
        SCHEDULER,
        "live.table, external)",
        "live.table[len(hits) :], external)",
    ),
    Sabotage(
        "admission-starts-inside-last-hit",
        "WRITE",
        SCHEDULER,
        "start = hit_tokens + external",
        "start = max(hit_tokens - 1, 0) + external",
        trace="shared-first-block",
    ),
    Sabotage(
        "refused-admission-counts-hits",
        "ATOMIC",
        SCHEDULER,
        "encoding.tokens, hits) is None:\n",
        "encoding.tokens, hits) is None:\n            live.computed = start\n",
    ),
    Sabotage(
        "resumed-counts-as-new",
        "ADM-13",
        SCHEDULER,
        "Status.PREEMPTED: Admission.RESUMED",
        "Status.PREEMPTED: Admission.NEW",
    ),
    # --- external tokens -----------------------------------------------------------------------
    Sabotage(
        "external-counts-hits-twice",
        "ADM-5",
        SCHEDULER,
        "max(0, live.request.external_tokens - hit_tokens)",
        "live.request.external_tokens",
    ),
    Sabotage(
        "external-only-once",
        "ADM-5",
        SCHEDULER,
        "external = max(0, ",
        "external = 0 if live.outputs else max(0, ",
    ),
    Sabotage(
        "external-without-slots",
        "COVER",
        SCHEDULER,
        "allocate(live, external + encoding",
        "allocate(live, encoding",
    ),
    Sabotage("external-not-reported", "ADM-5", SCHEDULER, "live.table, external)", "live.table)"),
    # --- what all share ------------------------------------------------------------------------
    Sabotage("lone-request-shares-nothing", "OUT-5", SCHEDULER, "return len(table)", "return 0"),
    Sabotage(
        "common-prefix-of-all-live",
        "OUT-5",
        SCHEDULER,
        "shared_prefix(table, len(self.running))",
        "shared_prefix(table, len(self.live))",
    ),
)
