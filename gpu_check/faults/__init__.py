"""Seeded faults: what the detectors must catch.

    batches   what the kernels are told: slots, tables, lengths, positions, inputs
    kernels   what they do: writes and attention
    workers   what an executor keeps between steps
    plans     what a scheduler may get wrong about memory
    table     all of them, with a sentence each
    hunt      runs them, each detector by itself

Which detector saw which is `docs/faults.md`:

    $ python -m gpu_check.faults.hunt --write
"""
