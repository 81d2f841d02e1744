"""Scenes that break one law each: what a scheduler could do wrong, by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from spec.tests.build import DRAFTS, EAGLE, ENCODER, grant, new, plan, request, resumed
from spec.vocabulary import EncoderItem, Finish, FinishReason, Request, StepPlan, StepResult

STOP, LENGTH, ABORT = FinishReason.STOP, FinishReason.LENGTH, FinishReason.ABORT


class Scene(NamedTuple):
    """What is lawful up to the last moment, and breaks one law there.

    The last moment is the first of these that is given: `asked` (a request that is accepted), `answer` (what
    was sampled and what was delivered after the last plan), `inside` (what is shown instead of the truth),
    else the last plan.  `also` names laws that cannot but be broken with it.
    """

    law: str
    signature: str
    requests: tuple[Request, ...] = ()
    plans: tuple[StepPlan, ...] = ()
    changes: Mapping[str, Any] = {}
    aborted: tuple[str, ...] = ()
    asked: Request | None = None
    answer: tuple[Mapping[str, tuple[int, ...]], StepResult] | None = None
    inside: Mapping[str, Any] | None = None
    also: frozenset[str] = frozenset()


A, B = request("a"), request("b")
LONG = request("a", 8)
TWINS = (request("a", range(8)), request("b", range(8)))
ADMIT_A = plan(new("a", 0, 4, [1]))
ADMIT_BOTH = plan(new("a", 0, 4, [1]), new("b", 0, 4, [2]))
ITEM = (EncoderItem(0, 4, 7),)
WITH_ITEM = request("a", 8, items=ITEM)
WITH_GRAMMAR = request("a", needs_grammar=True)


def shows(**inside: Any) -> dict[str, Any]:
    """An implementation whose only request runs and holds block 1, and that shows one thing wrong."""
    return {"requests": (A,), "plans": (ADMIT_A,), "inside": inside}


def says(sampled: tuple[int, ...], *ends: Finish, tokens: tuple[int, ...] | None = None, **changes: Any) -> Any:
    """The only request, which may say four tokens, is sampled `sampled`; `tokens`, or the same, are delivered."""
    told = sampled if tokens is None else tokens
    result = StepResult((("a", told),) if told else (), ends)
    return {"requests": (A,), "plans": (ADMIT_A,), "answer": ({"a": sampled} if sampled else {}, result), **changes}


SCENES: tuple[Scene, ...] = (
    # tokens
    Scene("BUDGET", "empty grant", (A, B), (plan(new("a", 0, 0, [1]), new("b", 0, 4, [2])),)),
    Scene("BUDGET", "over budget", (A, B), (ADMIT_BOTH,), {"max_num_batched_tokens": 7, "max_num_seqs": 2}),
    Scene(
        "BUDGET",
        "over encoder budget",
        (WITH_ITEM, request("b", items=ITEM)),
        (plan(new("a", 0, 4, [1], items=(0,)), new("b", 0, 4, [2], items=(0,))),),
        {"max_num_encoder_input_tokens": 7, "encoder_cache_size": 8},
    ),
    Scene("SEATS", "too many running", (A, B), (ADMIT_BOTH,), {"max_num_seqs": 1}),
    Scene(
        "LENGTH",
        "position",
        (LONG,),
        (plan(new("a", 0, 7, [1, 2])), plan(grant("a", 7, 2, [3], drafts=(9,)))),
        {"max_model_len": 8, **DRAFTS},
    ),
    Scene("LENGTH", "table", (A,), (plan(new("a", 0, 4, [1, 2, 3])),), {"max_model_len": 8}),
    Scene("CONTIGUOUS", "gap", (LONG,), (plan(new("a", 0, 4, [1, 2])), plan(grant("a", 5, 1)))),
    Scene("LAST", "nothing known", (A,), (ADMIT_A, plan(grant("a", 4, 1, [2])))),
    Scene("LAST", "nothing known", (A,), (ADMIT_A, plan(grant("a", 4, 1, [2], drafts=(9,)))), DRAFTS),
    Scene(
        "LAST",
        "too many drafts",
        (LONG,),
        (plan(new("a", 0, 4, [1])), plan(grant("a", 4, 4, [2], drafts=(9,)))),
        DRAFTS,
    ),
    Scene("LAST", "unknown tokens", (A,), (plan(new("a", 0, 5, [1, 2])),)),
    # blocks
    Scene("POOL", "reserved block", (A,), (plan(new("a", 0, 4, [0])),)),
    Scene("POOL", "no such block", (A,), (plan(new("a", 0, 4, [9])),)),
    Scene("POOL", "over-allocated", (A,), (plan(new("a", 0, 4, [1, 0])),), {"num_blocks": 2}),
    Scene("COUNT", "handed out while held", (A, B), (plan(new("a", 0, 4, [1, 2]), new("b", 0, 4, [3, 2])),)),
    Scene("COUNT", "references", **shows(refs={1: 2})),
    Scene("COUNT", "free blocks", **shows(free_blocks=8)),
    Scene("COUNT", "twice in the free queue", **shows(free_order=(2, 3, 4, 5, 6, 7, 8, 2))),
    Scene("COUNT", "free queue", **shows(free_order=(2, 1, 3, 4, 5, 6, 7, 8))),
    Scene("COUNT", "free queue", **shows(free_order=(0, 2, 3, 4, 5, 6, 7, 8))),
    Scene("COUNT", "free queue", **shows(free_order=())),
    Scene("ATOMIC", "table", **shows(tables={"a": [1, 2]})),
    Scene("ATOMIC", "table", **shows(tables={"gone": [2]})),
    Scene("ATOMIC", "no table", **shows(tables={}, free_order=(2, 3, 4, 5, 6, 7, 8))),
    Scene("ATOMIC", "computed", **shows(computed={"a": 3})),
    Scene("COVER", "no slot", (LONG,), (plan(new("a", 0, 5, [1])),)),
    Scene("COVER", "no lookahead", (LONG,), (plan(new("a", 0, 3, [1])),), EAGLE),
    Scene("WRITE", "shared block", TWINS, (plan(new("a", 0, 4, [1])), plan(new("b", 2, 2, [1])))),
    Scene("CONTENT", "unwritten slot", TWINS, (plan(new("a", 0, 3, [1])), plan(new("b", 4, 1, [1, 2])))),
    Scene("CONTENT", "unwritten slot", (LONG,), (plan(new("a", 4, 1, [1, 2])),)),
    Scene(
        "CONTENT",
        "foreign prefix",
        (A, request("b", 8)),
        (ADMIT_A, plan(new("b", 4, 1, [1, 2]))),
    ),
    Scene(
        "CONTENT",
        "foreign prefix",
        (request("a", range(8), lora_id=1), request("b", range(8), lora_id=2)),
        (plan(new("a", 0, 8, [1, 2])), plan(new("b", 4, 4, [1, 3]))),
        {"max_loras": 2},
    ),
    Scene("KEY", "unwritten slot", **shows(keys={2: "k"})),
    Scene("KEY", "foreign prefix", (LONG,), (plan(new("a", 0, 8, [1, 2])),), inside={"keys": {1: "k", 2: "k"}}),
    # encoder items
    Scene("EMBED", "not computed", (WITH_ITEM,), (plan(new("a", 0, 1, [1])),), ENCODER),
    Scene(
        "EMBED",
        "not computed",
        (WITH_ITEM,),
        (plan(new("a", 0, 1, [1], items=(0,))), plan(grant("a", 1, 1), freed_items=(("a", 0),))),
        ENCODER,
    ),
    Scene(
        "WHOLE",
        "cut",
        (WITH_ITEM,),
        (plan(new("a", 0, 3, [1], items=(0,))),),
        {"disable_chunked_mm_input": True, **ENCODER},
    ),
    # requests
    Scene("PREEMPTED", "scheduled too", (LONG,), (ADMIT_A, plan(grant("a", 4, 1, [2]), preempted=("a",)))),
    Scene("STATE", "duplicate id accepted", (A,), asked=A),
    Scene("STATE", "preempted twice", (A,), (ADMIT_A, plan(preempted=("a", "a")))),
    Scene("STATE", "preempted but not running", (A,), (plan(preempted=("a",)),)),
    Scene("STATE", "unknown request", (A,), (plan(new("b", 0, 4, [1])),)),
    Scene("STATE", "scheduled twice", (LONG,), (plan(new("a", 0, 4, [1]), new("a", 4, 4, [2])),)),
    Scene("STATE", "illegal transition", (A,), (plan(grant("a", 0, 4, [1])),)),
    Scene("STATE", "illegal transition", (A,), (plan(resumed("a", 0, 4, [1])),)),
    Scene("STATE", "grammar not ready", (WITH_GRAMMAR,), (ADMIT_A,)),
    Scene("STATE", "unknown item", (A,), (plan(new("a", 0, 4, [1], items=(0,))),), ENCODER),
    Scene("STATE", "two queues", **shows(waiting=("a",))),
    Scene("STATE", "running", **shows(running=())),
    Scene("STATE", "waiting", **shows(waiting=("b",))),
    Scene("ORDER", "victim", (A, request("b", 8)), (ADMIT_BOTH, plan(grant("b", 4, 4, [3]), preempted=("a",)))),
    Scene("ORDER", "overtaken", (A, B), (plan(new("b", 0, 4, [1])),)),
    Scene(
        "ORDER",
        "overtaken",
        (A, request("b", lora_id=1), request("c", lora_id=1)),
        (ADMIT_A, plan(new("c", 0, 4, [2]))),
        {"max_loras": 1},
    ),
    Scene("CAPS", "adapters", (request("a", lora_id=1), request("b", lora_id=2)), (ADMIT_BOTH,), {"max_loras": 1}),
    Scene(
        "CAPS",
        "encoder cache",
        (WITH_ITEM, request("b", items=ITEM)),
        (plan(new("a", 0, 4, [1], items=(0,)), new("b", 0, 4, [2], items=(0,))),),
        {"max_num_encoder_input_tokens": 8, "encoder_cache_size": 7},
    ),
    Scene("CAPS", "encoder cache", **shows(encoder_free=-1)),
    Scene("CAPS", "freed item", (WITH_ITEM,), (plan(freed_items=(("a", 0),)),), ENCODER, also=frozenset({"PROGRESS"})),
    # results
    Scene("OUTPUT", "stranger", (A, B), (ADMIT_A,), answer=({"a": (7,)}, StepResult((("a", (7,)), ("b", (7,))), ()))),
    Scene("OUTPUT", "stranger", (A,), (ADMIT_A,), answer=({"a": (7,)}, StepResult((("a", (7,)),) * 2, ()))),
    Scene("OUTPUT", "tokens", **says((7,), tokens=(8,))),
    Scene("OUTPUT", "tokens", **says((7,), tokens=())),
    Scene("OUTPUT", "tokens", **says((), tokens=(7,))),
    Scene("OUTPUT", "tokens", **says((0, 7), Finish("a", STOP), tokens=(0, 7))),
    Scene("FINISH", "flush", (A,), (plan(new("a", 0, 4, [1]), finished=("a",)),)),
    Scene("FINISH", "flush", (A, B), (ADMIT_A,), aborted=("b",)),
    Scene("FINISH", "not live", **says((0,), Finish("b", STOP))),
    Scene("FINISH", "not live", **says((0,), Finish("a", STOP), Finish("a", STOP))),
    Scene("FINISH", "length for stop", **says((0,), Finish("a", LENGTH))),
    Scene("FINISH", "goes on for stop", **says((0,))),
    Scene("FINISH", "goes on for length", **says((7,), changes={"max_model_len": 5})),
    Scene("FINISH", "stop for goes on", **says((7,), Finish("a", STOP))),
    Scene("FINISH", "abort for stop", **says((0,), Finish("a", ABORT))),
    Scene("FINISH", "stop for stop", **says((0,), Finish("a", STOP, 7))),
    Scene("FINISH", "without a token", **says((), Finish("a", STOP))),
    # progress
    Scene("IDLE", "left in tokens", **shows(leftovers=("tokens: gone",))),
    Scene("IDLE", "blocks", inside={"free_blocks": 7}, also=frozenset({"COUNT"})),
    Scene("IDLE", "encoder cache", changes=ENCODER, inside={"encoder_free": 7}),
    Scene("PROGRESS", "unservable accepted", changes={"num_blocks": 2}, asked=request("a", 5)),
    Scene("PROGRESS", "stall", (A,), (plan(),)),
    Scene(
        "STARVE",
        "no progress",
        (request("a", 4, items=ITEM), B),
        (
            plan(new("a", 0, 4, [1], items=(0,)), new("b", 0, 4, [2])),
            *(plan(preempted=("b",)), plan(resumed("b", 0, 4, [2]))) * 5,
            plan(preempted=("b",)),
        ),
        {"max_model_len": 4, **ENCODER},
    ),
)
