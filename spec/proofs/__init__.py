"""Proofs, with Z3, about the very functions that run.  Only this folder imports z3.

    symbols          running ordinary Python on symbols
    state            a symbolic state of the scheduler, its invariant, loops and contracts
    cases            what is proved of each action, of the step and of a run
    lemmas           the counting lemmas, proved by induction, and wrong ones, refuted
    policies         release policies made of the spec's actions
    theorems         what the laws' theorems say
    proving          runs the cases
    reaching         states that a run comes to, and the runs that come there
    counterexamples  what must be refuted
    traces           counterexamples as runs of the spec
    mutation         every mutant of the actions must make a proof fail
    page             docs/theorems.md

`docs/trusted-base.md` tells what is assumed.
"""
