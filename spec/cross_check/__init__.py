"""An outside check: the counting core written a second time, in Promela, and searched with SPIN.

    $ make cross-check

The spec that runs, explored without renaming, must have as many states and transitions as SPIN finds in `core.pml`.
"""
