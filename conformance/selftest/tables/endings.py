"""Results, stops, aborts, and what a request leaves behind."""

from __future__ import annotations

from conformance.selftest.sabotage import Sabotage

SCHEDULER = "reference.scheduler"
LIMITS = "reference.limits"

ENDINGS: tuple[Sabotage, ...] = (
    # --- what is delivered ---------------------------------------------------------------------
    Sabotage(
        "tokens-behind-the-stop-delivered",
        "UPD-4",
        SCHEDULER,
        "tuple(sampled[:count]), finish",
        "tuple(sampled), finish",
    ),
    Sabotage(
        "stop-token-not-delivered",
        "OUTPUT",
        SCHEDULER,
        "sampled[:count]), finish",
        "sampled[: count - 1]), finish",
    ),
    Sabotage(
        "deliveries-in-reverse",
        "UPD-1",
        SCHEDULER,
        "for live in self.running:\n            grant",
        "for live in reversed(self.running):\n            grant",
    ),
    Sabotage(
        "empty-deliveries",
        "UPD-4",
        SCHEDULER,
        "            if tokens:\n",
        "            if tokens is not None:\n",
    ),
    Sabotage(
        "only-first-token-delivered",
        "OUTPUT",
        SCHEDULER,
        "return tuple(sampled), None",
        "return tuple(sampled[:1]), None",
    ),
    # --- stop rules ----------------------------------------------------------------------------
    Sabotage("eos-goes-on", "FIN-1", LIMITS, "return not live.request.ignore_eos and", "return not live and"),
    Sabotage("ignore-eos-ignored", "FIN-1", LIMITS, "not live.request.ignore_eos and ", ""),
    Sabotage("stop-tokens-ignored", "FIN-1", LIMITS, "token in live.request.stop_token_ids", "token is None"),
    Sabotage("stop-token-not-named", "FIN-1", LIMITS, "FinishReason.STOP, True", "FinishReason.STOP, False"),
    Sabotage(
        "eos-named-as-stop-token",
        "FIN-1",
        LIMITS,
        "(_is_eos, FinishReason.STOP, False)",
        "(_is_eos, FinishReason.STOP, True)",
    ),
    Sabotage(
        "stop-reported-as-length",
        "FIN-1",
        LIMITS,
        "(_is_stop_token, FinishReason.STOP,",
        "(_is_stop_token, FinishReason.LENGTH,",
    ),
    Sabotage(
        "length-before-stop",
        "FIN-1",
        LIMITS,
        "    (_is_eos,",
        "    (_uses_up_max_tokens, FinishReason.LENGTH, False),\n    (_is_eos,",
    ),
    Sabotage("max-tokens-one-too-many", "FIN-1", LIMITS, "live.outputs >= live", "live.outputs > live"),
    Sabotage("max-tokens-one-too-few", "FIN-1", LIMITS, "live.outputs >= live", "live.outputs + 1 >= live"),
    Sabotage(
        "model-length-ignored-at-stop",
        "FIN-1",
        LIMITS,
        "len(live.tokens) >= config",
        "len(live.tokens) > config",
    ),
    # --- what an ended request leaves ----------------------------------------------------------
    Sabotage("ended-keeps-blocks", "FIN-2", SCHEDULER, "self.kv_cache.release(live)", "pass"),
    Sabotage(
        "ended-keeps-items",
        "FIN-2",
        SCHEDULER,
        "self.encoder_cache.release_all(live)",
        "pass",
        trace="abort-with-item",
    ),
    Sabotage("ended-stays-in-the-map", "IDLE", SCHEDULER, "del self.live[live.request_id]", "pass"),
    Sabotage("ended-stays-in-running", "STATE", SCHEDULER, "if live.status is Status.RUNNING]", "if live.status]"),
    Sabotage("ended-never-reported", "FIN-3", SCHEDULER, "self._finished.add(live.request_id)", "pass"),
    Sabotage("ended-reported-for-ever", "FIN-3", SCHEDULER, "self._finished.clear()", "pass"),
    # --- aborts --------------------------------------------------------------------------------
    Sabotage(
        "aborted-never-reported",
        "FIN-3",
        SCHEDULER,
        "            self.waiting.remove(live)\n        self._end(live)",
        "            self.waiting.remove(live)\n        self._end(live)\n        self._finished.discard(request_id)",
    ),
    Sabotage("aborted-stays-in-running", "ABT-1", SCHEDULER, "self.running.remove(live)", "pass"),
    Sabotage("aborted-stays-in-waiting", "ABT-1", SCHEDULER, "self.waiting.remove(live)", "pass"),
    Sabotage(
        "abort-of-unknown-raises",
        "ABT-1",
        SCHEDULER,
        "live = self.live.get(request_id)\n        if live is None:\n            return\n        if",
        "live = self.live[request_id]\n        if",
    ),
    Sabotage(
        "abort-misses-the-preempted",
        "ABT-1",
        SCHEDULER,
        "if live.status is Status.RUNNING:\n            self.running",
        "if live.status is not Status.WAITING:\n            self.running",
    ),
    Sabotage(
        "abort-keeps-blocks",
        "ABT-1",
        SCHEDULER,
        "            self.running.remove(live)\n",
        "            self.running.remove(live)\n            live.table = []\n",
    ),
)
