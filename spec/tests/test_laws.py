"""Every law is broken by at least one hand-made scene, by exactly that law, and by no clean run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from spec import laws
from spec.laws import LAW_BY_ID, LAWS, Law, Violation
from spec.observer import Inspection, Observer
from spec.outcomes import OUTCOMES
from spec.tests.build import DRAFTS, EAGLE, ENCODER, config, request
from spec.tests.drive import Run
from spec.tests.scenes import SCENES, Scene
from spec.vocabulary import EncoderItem, ModelOutput


def found(scene: Scene) -> list[Violation]:
    """What the laws say of the last moment; everything before it must be lawful."""
    observer = Observer(config(**scene.changes))
    for each in scene.requests:
        observer.add(each)
    for each_id in scene.aborted:
        observer.abort(each_id)
    if scene.asked is not None:
        return laws.check_add(observer, scene.asked)
    last_is_a_plan = scene.answer is None and scene.inside is None
    for number, each_plan in enumerate(scene.plans, 1):
        violations = laws.check_plan(observer, each_plan)
        if not violations:
            step = observer.apply(each_plan)
            violations = laws.check_step(observer, step)
        if last_is_a_plan and number == len(scene.plans):
            return violations
        assert not violations
    if scene.inside is not None:
        return laws.check_inspection(observer, replace(truth(observer), **scene.inside))
    assert scene.answer is not None
    sampled, result = scene.answer
    violations = laws.check_answer(observer, step, result)
    return violations or laws.check_result(observer, observer.settle(step, ModelOutput(sampled), result))


def truth(observer: Observer) -> Inspection:
    """What an implementation would show that did exactly what its plans say."""
    blocks = range(1, observer.config.num_blocks)
    free = tuple(block for block in blocks if block not in observer.holders)
    return Inspection(
        running=tuple(observer.running),
        waiting=tuple(seen.request.request_id for seen in observer.waiting),
        computed={name: seen.computed for name, seen in observer.live.items()},
        tables={name: seen.table for name, seen in observer.live.items()},
        free_blocks=len(free),
        refs={block: observer.holders.get(block, 0) for block in blocks},
        keys={},
        free_order=free,
        encoder_free=observer.config.encoder_cache_size - observer.encoder_used,
    )


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: f"{scene.law} {scene.signature}")
def test_a_scene_breaks_its_law_and_no_other(scene: Scene) -> None:
    violations = found(scene)
    assert (scene.law, scene.signature) in {(v.law, v.signature) for v in violations}
    assert {v.law for v in violations} == {scene.law} | scene.also


@pytest.mark.parametrize("scene", [s for s in SCENES if s.inside is not None], ids=lambda s: f"{s.law} {s.signature}")
def test_the_truth_in_place_of_a_wrong_inside_is_lawful(scene: Scene) -> None:
    assert found(scene._replace(inside={})) == []


@pytest.mark.parametrize("law", [law for law in LAWS if law.id != "ANSWER"], ids=lambda law: law.id)
def test_every_way_to_break_a_law_has_a_scene(law: Law) -> None:
    """A signature that is put together of parts is a pattern here: `{...}` stands for any text."""
    shown = {scene.signature for scene in SCENES if scene.law == law.id}
    assert shown
    for signature in signatures(law):
        pattern = re.sub(r"\\{.*?\\}", ".+", re.escape(signature))
        assert any(re.fullmatch(pattern, each) for each in shown), signature


def signatures(law: Law) -> set[str]:
    """The signatures in the text of a law's checks."""
    checks = (law.on_add, law.on_plan, law.on_step, law.on_answer, law.on_result, law.on_inspection)
    text = "".join(inspect.getsource(check) for check in checks if check is not None)
    return set(re.findall(r'yield\s*\(?\s*f?"([^"]+)",', text))


def test_the_signatures_of_a_law_are_found_in_its_text() -> None:
    assert signatures(LAW_BY_ID["IDLE"]) == {"left in {map_name}", "blocks", "encoder cache"}
    assert all(signatures(law) for law in LAWS if law.id != "ANSWER")


def test_a_violation_reads_as_law_kind_and_numbers() -> None:
    (violation,) = found(SCENES[1])
    assert str(violation) == "BUDGET (over budget): 8 tokens scheduled, budget 7"


# --- clean runs ----------------------------------------------------------------------------------


def text(run: Run) -> None:
    run.add(*(request(name, 4 + i, 6) for i, name in enumerate("abcde")))
    run.steps(10)
    run.abort("c")
    run.steps(30)


def twins(run: Run) -> None:
    run.add(*(request(name, range(9 - i), 5) for i, name in enumerate("abc")))
    run.steps(5)
    run.add(request("d", range(9), 5))
    run.steps(20)


def drafts(run: Run) -> None:
    run.add(*(request(name, 5 + i, 9) for i, name in enumerate("abcd")))
    for accepted in (0, 1, 2, 1, 0) * 8:
        run.step(accepted)


def items(run: Run) -> None:
    pictures = (EncoderItem(1, 4, 7), EncoderItem(6, 3, 8))
    run.add(*(request(name, (9,) * 10, 5, items=pictures) for name in "abc"))
    run.steps(30)


def adapters(run: Run) -> None:
    run.add(*(request(name, 6, 4, lora_id=i % 3) for i, name in enumerate("abcdef")))
    run.steps(40)


def grammars(run: Run) -> None:
    run.add(request("a", needs_grammar=True), request("b"))
    run.step()
    run.grammar_ready("a")
    run.steps(8)


def external(run: Run) -> None:
    run.add(*(request(name, range(9 + i), 4, external_tokens=5) for i, name in enumerate("abc")))
    run.steps(20)


def stops(run: Run) -> None:
    run.add(request("a"), request("b", stop_token_ids=(5,)), request("c", ignore_eos=True))
    for word in (5, 0, 0, 0, 0):
        run.step(word=word)


TIGHT = {"num_blocks": 8, "max_num_batched_tokens": 16}
CLEAN: tuple[tuple[Callable[[Run], None], dict[str, Any]], ...] = (
    (text, TIGHT),
    (text, {"long_prefill_token_threshold": 3, **TIGHT}),
    (text, {"enable_prefix_caching": False, **TIGHT}),
    (text, {"max_model_len": 8, "num_blocks": 6}),
    (twins, TIGHT),
    (twins, {"block_size": 1, "num_blocks": 16}),
    (drafts, {**TIGHT, **DRAFTS}),
    (drafts, {**TIGHT, **EAGLE}),
    (drafts, {"max_model_len": 9, "num_blocks": 7, **EAGLE}),
    (items, {**TIGHT, **ENCODER}),
    (items, {"disable_chunked_mm_input": True, **TIGHT, **ENCODER}),
    (adapters, {"max_loras": 1, **TIGHT}),
    (grammars, {}),
    (external, {"use_connector": True, **TIGHT}),
    (stops, {}),
)


@pytest.mark.parametrize(("events", "changes"), CLEAN, ids=lambda value: getattr(value, "__name__", ""))
def test_a_clean_run_breaks_no_law(events: Callable[[Run], None], changes: dict[str, Any]) -> None:
    run = Run(config(**changes))
    events(run)
    run.step()
    assert run.found == []
    assert not run.state.live
    assert run.reached <= OUTCOMES.keys()


def test_clean_runs_preempt_and_resume() -> None:
    run = Run(config(**TIGHT))
    text(run)
    assert any(each.preempted for each in run.plans)
