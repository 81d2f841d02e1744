"""The traces of the suite on tensors: what a paged engine computes, against dense attention.

$ pytest gpu_check/ --device cpu --dtype float64 --impl reference
$ pytest gpu_check/ --device cuda --attention triton

oracle      dense attention from token ids and positions alone: no blocks, no cache
criterion   how far from the oracle is too far
detectors   what looks on: NaN poison, owner map, written slots, oracle
inspector   one executor with all detectors on
runs        lockstep sessions whose plans are carried out on tensors
relabel     the same plans under other block ids
faults      what the detectors must catch, and which of them did
"""
