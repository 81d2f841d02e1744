"""Every small state: the spec, searched exhaustively in small scopes.

    scope      what a search is about: a configuration, who may come, what may happen
    scopes     the committed scopes, each about one thing
    family     a few hundred scopes more, from a grid of sizes
    world      one scheduler with everything that is seen of it, one move at a time, judged by every law
    canonical  a world as a value, up to renaming of blocks and of equal requests, and back
    search     breadth first, the graph of what is reachable, the shortest way to a breach
    liveness   deadlocks, and cycles in which somebody computes nothing new
    cover      few runs that take every edge of the graph
    stakes     which outcomes, rows and laws the scopes reach, and why the rest cannot be reached

The spec that is searched is the one that runs as the oracle, and moves come from the table that random runs draw from.
"""
