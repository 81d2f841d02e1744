"""A small production-shaped engine: the scheduler that the suite holds up as its example.

It shares nothing with the specification but the vocabulary, so that agreement between the two
means something.  One file for each piece of state: `free_queue`, `prefix_keys`, `prefix_index`
and `block_pool` know blocks, `kv_cache` knows block tables, `encoder_cache` knows items,
`live_request` and `waiting_queue` know requests, `limits` knows when a request ends, and
`scheduler` decides.
"""
