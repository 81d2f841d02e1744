"""When a law is at stake: a step in which a scheduler that broke it could be told from one that keeps it.

A law that holds in every state says little if it was never at stake; the report names those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spec.observer import Observer, StepSeen
from spec.state import State
from spec.vocabulary import Status

Stake = Callable[[State, Observer, StepSeen], bool]
"""Asked when the observer has followed a plan, before the model answers."""


def _preempts(s: State, o: Observer, step: StepSeen) -> bool:
    return bool(step.preempted)


def _computes_an_item(s: State, o: Observer, step: StepSeen) -> bool:
    return any(grant.items for grant, *_ in step.rows)


def _caps_are_reached(s: State, o: Observer, step: StepSeen) -> bool:
    adapters = o.config.max_loras > 0 and len(o.adapters_in_use()) == o.config.max_loras
    return adapters or bool(o.encoder_used and o.encoder_used == o.config.encoder_cache_size)


STAKES: Mapping[str, Stake] = {
    "ANSWER": lambda s, o, step: True,
    "BUDGET": lambda s, o, step: sum(row[0].tokens for row in step.rows) == o.config.max_num_batched_tokens,
    "SEATS": lambda s, o, step: len(o.running) == o.config.max_num_seqs and bool(o.waiting),
    "LENGTH": lambda s, o, step: any(end == o.config.max_model_len for *_, end in step.rows),
    "POOL": lambda s, o, step: bool(step.taking) and len(o.holders) == o.config.num_blocks - 1,
    "COUNT": lambda s, o, step: bool(o.shared),
    "ATOMIC": lambda s, o, step: any(action == "admit" or how == "preempted itself" for action, how in s.log),
    "COVER": lambda s, o, step: bool(step.taking),
    "CONTIGUOUS": lambda s, o, step: any(status is Status.RUNNING for _, _, status, *_ in step.rows),
    "WRITE": lambda s, o, step: bool(o.shared),
    "CONTENT": lambda s, o, step: any(seen.adopted for _, seen, *_ in step.admitted),
    "KEY": lambda s, o, step: bool(s.pool.key_of),
    "LAST": lambda s, o, step: any(end >= known for *_, known, end in step.rows),
    "PREEMPTED": _preempts,
    "STATE": lambda s, o, step: bool(step.admitted),
    "ORDER": lambda s, o, step: bool(step.preempted or step.overtakings),
    "CAPS": _caps_are_reached,
    "EMBED": _computes_an_item,
    "WHOLE": lambda s, o, step: o.config.disable_chunked_mm_input and _computes_an_item(s, o, step),
    "OUTPUT": lambda s, o, step: any(end >= known for *_, known, end in step.rows),
    "FINISH": lambda s, o, step: bool(step.ended),
    "IDLE": lambda s, o, step: not o.live and bool(step.ended),
    "PROGRESS": lambda s, o, step: any(seen.grammar_ready for seen in o.live.values()),
    "STARVE": lambda s, o, step: bool(o.waiting),
}
"""For each law, whether a step puts it at stake."""


def at_stake(state: State, observer: Observer, step: StepSeen) -> tuple[str, ...]:
    return tuple([law for law, holds in STAKES.items() if holds(state, observer, step)])
