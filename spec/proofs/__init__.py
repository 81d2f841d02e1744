"""Proofs, with Z3, about the very functions that run.  Only this folder imports z3.

    logic            the counting lemmas as formulas
    value            a whole number or truth value that stands for all of them
    paths            every path of an action: forks by re-execution, questions to the solver
    witness          the smallest counterexample
    places           where in the text a path decides
    loops            loops of symbolic length, by their invariants
    keys             what prefix keys and slots mean
    maps, lists      the containers of the state as tracked maps, with the counting lemmas
    lemmas           those lemmas, proved by induction, and wrong ones, refuted
    queues           queues of requests, and who stands where
    numbers          the numbers of a step, and what each action does to them
    sources          the modules of `spec`, loaded from their own text to run on symbols
    world            a symbolic state: any pool, any number of requests
    invariants       the inductive invariant
    loop_invariants  what holds before each round of each loop over blocks and keys
    step_invariants  and of each loop over requests
    contracts        what a function promises to its callers
    cases            an action in one situation, and what must hold behind it
    arithmetic       cases: the formulas
    pooling          cases: the pool's own actions
    allocating       cases: tables, publication, lookup, grants
    visiting         cases: the running pass
    admitting        cases: the waiting pass
    answering        cases: the model's answer, requests come and go
    encoding         cases: encoder items
    stepping         cases: the whole step, as loops over actions
    progress         cases: PROGRESS, from the head of a step to a run
    policies         release policies made of the spec's actions
    policing         cases: the lawful one
    theorems         what the laws' theorems say
    proving          runs the cases
    counterexamples  what must be refuted
    reaching         states that a run comes to, and the runs that come there
    traces           counterexamples as runs of the spec
    mutation         every mutant of the actions must make a proof fail
    page             docs/theorems.md

`docs/trusted-base.md` tells what is assumed.
"""
