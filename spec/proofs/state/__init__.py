"""A symbolic state of the scheduler, and what is said of it.

world            the state: any pool, any number of requests
invariants       the inductive invariant
numbers          the numbers of a step, and what each action does to them
loop_invariants  what holds before each round of each loop over blocks and keys
step_invariants  and of each loop over requests
contracts        what a function promises to its callers
"""
