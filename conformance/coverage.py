"""What the runs reached: every way in which a micro-step of the spec can end, with how often it did."""

from __future__ import annotations

from collections import Counter

from spec.outcomes import OUTCOMES

NEEDS = {
    "speculation": ("drafts", "verify", "with drafts", "model length"),
    "eagle": ("eagle drops one", "capped at the model length"),
    "adapters": ("adapters",),
    "encoder": ("choose_items", "free item", "nothing to compute"),
    "grammar": ("grammar", "grammar ready", "waiting_for_grammar"),
    "connector": ("external",),
    "prompt_logprobs": ("reads no cache",),
    "reset": ("reset",),
}
"""Which capability an outcome needs: named by its action or by the outcome itself."""


def unreached(reached: Counter[tuple[str, str]], capabilities: frozenset[str]) -> list[tuple[str, str]]:
    """Rows of the table that no run took, although the implementation can do what they need."""
    excused = {word for capability, words in NEEDS.items() if capability not in capabilities for word in words}
    return [row for row in OUTCOMES if not reached[row] and not excused & set(row)]


def lines(reached: Counter[tuple[str, str]], capabilities: frozenset[str]) -> list[str]:
    """The report: one line for each action, then what was never reached."""
    actions: dict[str, list[str]] = {}
    for action, outcome in OUTCOMES:
        actions.setdefault(action, []).append(f"{outcome} {reached[action, outcome]}")
    report = [f"{action:14} {' · '.join(outcomes)}" for action, outcomes in actions.items()]
    missing = unreached(reached, capabilities)
    names = ", ".join(f"{action}: {outcome} ({OUTCOMES[action, outcome]})" for action, outcome in missing)
    return [*report, f"never reached: {names or 'nothing, every row was taken'}"]
