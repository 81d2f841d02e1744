"""Running ordinary Python on symbols, with z3.

value        a whole number or truth value that stands for all of them
paths        every path of an action: forks by re-execution, questions to the solver
witness      the smallest counterexample
places       where in the text a path decides
keys         what prefix keys and slots mean
logic        claims about counts as formulas
maps, lists  the containers of the state as tracked maps
queues       queues of requests, and who stands where
loops        loops of symbolic length, by their invariants
sources      the modules of `spec`, loaded from their own text to run on symbols
"""
