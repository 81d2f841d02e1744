"""The rules of profile vllm-0.8.5: id, sentence, and the function that carries it out.

A rule is found from its id here, in the docstring of its code, in the guards and outcomes that name it, and
in a lockstep difference.  Where a sentence says "lawful", the release does otherwise and a quirk or a known
deviation says how.
"""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """One rule; `code` is `module.name` within `spec`."""

    id: str
    sentence: str
    code: str


RULES: tuple[Rule, ...] = (
    # configuration and requests
    Rule("CFG-1", "One token budget for the whole step: max_num_batched_tokens.", "vocabulary.Config"),
    Rule(
        "CFG-2",
        "Budget, seats, block size and lengths are positive; the budget is at least the seats.",
        "validity.check_config",
    ),
    Rule("CFG-6", "A prompt may fill the model length, and no more.", "validity.check_request"),
    Rule("ST-1", "A request waits, waits for its grammar, runs, is preempted, or has finished.", "vocabulary.Status"),
    Rule(
        "ST-3",
        "A grammar that has become ready is noticed when the request is examined at the front of the queue.",
        "waiting.examine_one",
    ),
    Rule(
        "ST-4",
        "A new request goes to the tail of the queue; lawful: never under the id of a live one.",
        "lifecycle.ADD",
    ),
    Rule(
        "PRG-1",
        "Lawful: a request that would not fit the pool alone at its longest is refused.",
        "formulas.longest_footprint",
    ),
    Rule(
        "ABT-1",
        "An abort ends a request in any state and frees what it holds at once; unknown ids are ignored.",
        "lifecycle.abort",
    ),
    # the step
    Rule("BUD-1", "A step begins with the full token and encoder budgets.", "allocation.Step"),
    Rule("BUD-5", "A grant is charged to the budgets when it is made.", "allocation.grant"),
    Rule(
        "RUN-1", "Running requests are visited in the order of their admission while budget is left.", "running.VISIT"
    ),
    Rule("RUN-3", "A running request wants all its known tokens and its drafts.", "formulas.running_demand"),
    Rule(
        "RUN-4",
        "Its tokens are cut by the long-prefill threshold, the budget, the model length, the encoder, in this order.",
        "running.demand_of_running",
    ),
    Rule(
        "RUN-5",
        "A running request that can compute nothing keeps its seat, and the next one is visited.",
        "allocation.ALLOCATE",
    ),
    Rule(
        "RUN-6",
        "While the pool is too small for it, a running request preempts; its tokens stay as they were cut.",
        "running.visit_one_running",
    ),
    Rule("RUN-7", "A request that had to preempt itself was the last to visit.", "running.visit_one_running"),
    Rule("RUN-8", "The plan of a running request names only the blocks that are new.", "allocation.grant"),
    Rule("PRE-1", "The victim is the newest running request.", "running.preempt_one"),
    Rule(
        "PRE-3",
        "A victim gives its blocks (lawful: and encoder entries) back; it waits in front, nothing computed.",
        "running.preempt_one",
    ),
    Rule(
        "LORA-1",
        "Adapters in use are those of the running requests; lawful: of all of them, scheduled or not.",
        "scheduler.schedule",
    ),
    Rule("ADM-1", "Nobody is admitted in a step that preempted somebody.", "waiting.ADMISSIONS"),
    Rule(
        "ADM-2", "Requests are admitted while somebody waits, budget is left and a seat is free.", "waiting.ADMISSIONS"
    ),
    Rule(
        "ADM-3", "A request that waits for its grammar or for an adapter is set aside for the step.", "waiting.EXAMINE"
    ),
    Rule("ADM-3.1", "A request is set aside until its grammar is ready.", "waiting.EXAMINE"),
    Rule("ADM-3.3", "A request is set aside if its adapter is not in use and the cap is reached.", "waiting.EXAMINE"),
    Rule(
        "ADM-3.6",
        "A request that can compute nothing before an encoder item ends the admissions of the step.",
        "waiting.admit_one",
    ),
    Rule("ADM-4", "Each attempt to admit looks the prefix up anew.", "waiting.demand_of_waiting"),
    Rule("ADM-5", "The external store supplies what it has beyond the hits.", "waiting.demand_of_waiting"),
    Rule(
        "ADM-6", "A waiting request wants its known tokens; drafts of a resumed one wait.", "formulas.admission_demand"
    ),
    Rule(
        "ADM-8",
        "Its tokens are cut by the long-prefill threshold, the budget and the encoder, in this order.",
        "waiting.demand_of_waiting",
    ),
    Rule(
        "ADM-10", "The allocation of an admission counts its hits and external tokens as computed.", "waiting.admit_one"
    ),
    Rule(
        "ADM-12",
        "An admission that the pool refuses ends the admissions of the step; nobody is preempted for it.",
        "waiting.admit_one",
    ),
    Rule("ADM-13", "An admitted request runs from now on; its plan names its whole table.", "waiting.admit_one"),
    Rule("Q-1", "The queue is examined at its front.", "state.State"),
    Rule("Q-3", "Those set aside return to the front in their order.", "scheduler.close_step"),
    Rule(
        "OUT-2", "A plan holds the grants, the preempted, and what ended since the last plan.", "scheduler.close_step"
    ),
    Rule("OUT-4", "Grants stand in the order in which they were made.", "vocabulary.StepPlan"),
    Rule(
        "OUT-5",
        "The common prefix is the leading run of blocks that every running request holds.",
        "scheduler.common_prefix_blocks",
    ),
    Rule("ADV-1", "Computed tokens advance when they are scheduled.", "scheduler.close_step"),
    # blocks
    Rule(
        "ALLOC-A",
        "A request gets all blocks that it lacks for computed, scheduled and lookahead tokens, or none.",
        "allocation.grant",
    ),
    Rule("ALLOC-1", "A hit on a free block uses up that block: it cannot be taken as well.", "formulas.available"),
    Rule(
        "ALLOC-4",
        "Capacity is tested before the need is cut at the model length; lawful: a full table then takes nothing.",
        "formulas.blocks_taken",
    ),
    Rule("BLK-1", "Block 0 is never handed out.", "pool.Pool"),
    Rule("BLK-2", "At first the free queue is in the order of the ids.", "pool.Pool"),
    Rule("BLK-3", "A block is taken from the front of the free queue and loses its key.", "pool.take"),
    Rule("BLK-4", "A hit adds a reference and takes the block out of the free queue.", "pool.touch"),
    Rule("EVI-1", "Eviction is lazy, and leaves duplicates of the block hittable.", "pool.withdraw"),
    Rule(
        "FREE-1",
        "A table is given back tail first, each block to the back of the queue; with caching off head first.",
        "lifecycle.release_table",
    ),
    Rule("FREE-3", "A block that others hold stays held.", "pool.release"),
    Rule(
        "RESET-1",
        "The prefix cache is reset only while no block is held; the free queue keeps its order.",
        "pool.forget_keys",
    ),
    # prefix
    Rule("HASH-1", "A key covers the tokens of a complete block and the key of the block before it.", "prefix"),
    Rule("HASH-2", "Keys are equal if and only if their contents are.", "state.State"),
    Rule("HASH-3", "A key covers the adapter, and lawful every encoder item that overlaps the block.", "prefix"),
    Rule(
        "HASH-4",
        "Keys are worked out for all blocks known at the first lookup, then one by one with publication.",
        "state.Live",
    ),
    Rule(
        "CACHE-1",
        "A waiting request hits its longest published prefix; a drafter with KV gives one block back.",
        "prefix.longest_hit",
    ),
    Rule("CACHE-3", "A hit never covers the whole sequence.", "prefix.longest_hit"),
    Rule("CACHE-4", "Of duplicates the oldest registration is hit.", "pool.oldest"),
    Rule(
        "CACHE-5",
        "The blocks that scheduled tokens complete become hittable; lawful: their number never falls.",
        "prefix.publish_complete",
    ),
    Rule("CACHE-7", "Publication comes before computation, in the same step.", "prefix.publish_complete"),
    Rule("CACHE-8", "Drafts complete no block.", "formulas.complete_blocks"),
    # drafts
    Rule("SPEC-1", "A drafter with KV needs a slot for each draft behind the scheduled tokens.", "vocabulary.Config"),
    Rule(
        "SPEC-2",
        "Drafts inside the grant are verified, the rest dropped; if none is inside, all are kept.",
        "formulas.scheduled_drafts",
    ),
    Rule("SPEC-4", "A rejected draft's position is computed again.", "formulas.rejected_drafts"),
    Rule("SPEC-5", "A preempted request keeps its drafts.", "running.preempt_one"),
    # encoder
    Rule(
        "ENC-2",
        "The decoder stops before an item that would be cut, or that cache or budget cannot take.",
        "encoder.choose_items",
    ),
    Rule("ENC-3", "Lawful: items chosen in one walk count against the cache.", "encoder.STOPS"),
    Rule(
        "ENC-4",
        "An item leaves the cache when the decoder has passed it, and with its request.",
        "encoder.free_consumed",
    ),
    # the model has answered
    Rule("UPD-1", "Results are applied to running requests in their order.", "outcome.commit"),
    Rule("UPD-3", "Rejected drafts roll back before items are freed.", "outcome.settle_one"),
    Rule("UPD-4", "Tokens are appended one by one; what was sampled behind a stop is dropped.", "outcome.settle_one"),
    Rule(
        "FIN-1",
        "End of sequence, a stop token, model length or own cap end a request; lawful: tested in this order.",
        "outcome.stop",
    ),
    Rule("FIN-2", "A request that ends frees everything at once, before the next is looked at.", "lifecycle.finish"),
    Rule("FIN-3", "Its id goes into the next plan, once.", "lifecycle.finish"),
)

RULE_BY_ID = {rule.id: rule for rule in RULES}
