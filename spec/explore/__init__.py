"""Every small state: the spec, searched exhaustively in small scopes.

    scope      what a search is about: a configuration, who may come, what may happen
    scopes     the committed scopes, each about one thing
    family     a few hundred scopes more, from a grid of sizes
    world      one scheduler with everything that is seen of it, one move at a time, judged by every law
    canonical  a world as a value, up to renaming of blocks and of equal requests, and back
    search     breadth first, the graph of what is reachable, the shortest way to a breach
    liveness   deadlocks, and cycles in which somebody computes nothing new
    runs       a way through a graph as events that anybody can replay
    cover      few runs that take every edge of the graph
    stakes     when a law is at stake
    unreached  outcomes that the committed scopes do not reach, and why

The spec that is searched is the one that runs as the oracle, and moves come from the table that random runs draw from.
"""
