"""What is proved: actions, each in some situations.

case        the state before, the call, and what must hold behind it
arithmetic  the formulas
pooling     the pool's own actions
allocating  tables, publication, lookup, grants
visiting    the running pass
admitting   the waiting pass
answering   the model's answer, requests come and go
encoding    encoder items
stepping    the whole step, as loops over actions
progress    PROGRESS, from the head of a step to a run
policing    the lawful release policy
"""
