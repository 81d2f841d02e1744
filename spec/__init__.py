"""The specification of the vLLM V1 request scheduler, as Python that runs.

    vocabulary   the nouns that everybody shares
    validity     what an input must satisfy
    formulas     arithmetic on whole numbers
    guards       ordered tables of named conditions
    pool         blocks: references, the free queue, prefix keys
    prefix       what a key stands for, lookup and publication
    encoder      encoder items: which ones a step computes, their cache
    state        what the scheduler knows
    lifecycle    requests added, aborted, finished
    allocation   blocks and tokens for one request
    running      the running pass, preemption
    waiting      the waiting pass, admission
    outcome      tokens appended, drafts rolled back, stops
    scheduler    the step, as a loop over these micro-steps
    shadow       whose KV each slot holds
    observer     what can be seen of any scheduler from outside
    breaches     how a breach of each law is seen
    laws         what must hold of what is seen
    counting     the counting lemmas: what a count says of what it counts
    recount      the counts that the spec keeps, counted again
    model        what requests say, decided before any scheduler sees them
    events       what can happen to a scheduler
    moves        what can happen next
    explore      every small state

Tables: `outcomes` has every way in which a micro-step can end.  `rules` has the sentence of every rule.

Imports point down this list.  Nothing here imports anything but the standard library.
"""
