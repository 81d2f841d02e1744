"""A small production-shaped engine: the scheduler that the suite holds up as its example.

It shares nothing with the specification but the vocabulary, so that agreement between the two
means something.  One file for each piece of state: `free_queue`, `prefix_keys`, `prefix_index`
and `block_pool` know blocks, `kv_cache` knows block tables, `encoder_cache` knows items,
`live_request` and `waiting_queue` know requests, `limits` knows when a request ends, and
`scheduler` decides.

The other half computes, on torch: `model_config`, `placement` and `weights` say what the model is, `batch` and `bounds`
what a step computes, `kv_tensors` and `attention` where KV lies and how it is read, `model` puts these together,
`executor` carries out the plans of any scheduler, and `engine` joins both halves.  Deciding needs no torch.
"""
