/* The counting core of the scheduler, written a second time, for SPIN.

   Requests are counts: tokens known, tokens computed.  Blocks have ids, and the free queue has an order.
   Prefix caching, drafts, encoder items, adapters and grammars are off.

   Defined from outside: N requests, BLOCKS usable blocks of SIZE tokens, BUDGET, SEATS, LONGEST, THRESHOLD
   (0: none), AGAIN (whether requests come again), ABORTS, and for request i its prompt Pi and its most tokens Mi. */

#define ABSENT    0
#define WAITING   1
#define RUNNING   2
#define PREEMPTED 3
#define GONE      4

#define LIVE(r) (status[r] == WAITING || status[r] == RUNNING || status[r] == PREEMPTED)
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
#define LEAST(a, b) ((a) <= (b) -> (a) : (b))
#define BLOCK(r, i) table[(r) * BLOCKS + (i)]

/* The state.  What is not in use is 0, so that equal states are equal vectors. */
byte status[N];
byte known[N];
byte computed[N];
byte held[N];                /* blocks in the table */
byte table[N * BLOCKS];
bool ended[N];               /* since the last plan */
byte running[N], runs;       /* in the order of admission */
byte waiting[N], waits;      /* front first */
byte queue[BLOCKS], frees;   /* the free queue, front first */

/* Scratch, no part of the state. */
hidden byte prompt[4], most[4], got[4];
hidden byte i, j, r, victim, budget, visited, tokens, place;
hidden short needed;
hidden byte preempted, itself, somebody;   /* SPIN has no hidden bits */

inline take(request) {
    BLOCK(request, held[request]) = queue[0];
    held[request]++;
    frees--;
    for (j : 0 .. BLOCKS - 2) { queue[j] = queue[j + 1] }
    queue[BLOCKS - 1] = 0
}

/* Without prefix caching a table is released front first (FREE-1). */
inline release_table(request) {
    j = 0;
    do
    :: j < held[request] -> queue[frees] = BLOCK(request, j); frees++; BLOCK(request, j) = 0; j++
    :: else -> break
    od;
    held[request] = 0
}

/* A macro, because an array cannot be handed to an inline. */
#define REMOVE(line, length, at) \
    j = at; \
    length--; \
    do \
    :: j < length -> line[j] = line[j + 1]; j++ \
    :: else -> break \
    od; \
    line[length] = 0

inline finish(request) {
    release_table(request);
    known[request] = 0;
    computed[request] = 0;
    ended[request] = true;
    status[request] = (AGAIN -> ABSENT : GONE)
}

inline preempt() {
    victim = running[runs - 1];
    REMOVE(running, runs, runs - 1);
    release_table(victim);
    computed[victim] = 0;
    status[victim] = PREEMPTED;
    j = waits;
    do
    :: j > 0 -> waiting[j] = waiting[j - 1]; j--
    :: else -> break
    od;
    waiting[0] = victim;
    waits++;
    preempted = true
}

inline cut() {
    if
    :: THRESHOLD > 0 && tokens > THRESHOLD -> tokens = THRESHOLD
    :: else
    fi;
    tokens = LEAST(tokens, budget)
}

inline grant() {
    i = 0;
    do
    :: i < needed -> take(r); i++
    :: else -> break
    od;
    got[r] = tokens;
    budget = budget - tokens
}

inline visit_running() {
    do
    :: visited < runs && budget > 0 ->
        r = running[visited];
        tokens = known[r] - computed[r];
        cut();
        tokens = LEAST(tokens, LONGEST - computed[r]);
        if
        :: tokens == 0
        :: else ->
            needed = CEIL_DIV(computed[r] + tokens, SIZE) - held[r];
            itself = false;
            do
            :: !itself && needed > frees -> preempt(); itself = (victim == r)
            :: else -> break
            od;
            if
            :: itself
            :: else -> grant()
            fi
        fi;
        visited++
    :: else -> break
    od
}

inline admit() {
    do
    :: !preempted && waits > 0 && budget > 0 && runs < SEATS ->
        r = waiting[0];
        tokens = known[r];
        cut();
        needed = CEIL_DIV(tokens, SIZE);
        if
        :: needed > frees -> break
        :: else
        fi;
        REMOVE(waiting, waits, 0);
        running[runs] = r;
        runs++;
        status[r] = RUNNING;
        grant()
    :: else -> break
    od
}

/* Every request whose known tokens are all computed samples one (UPD-3). */
inline commit() {
    place = 0;
    do
    :: place < runs ->
        r = running[place];
        computed[r] = computed[r] + got[r];
        if
        :: got[r] > 0 && computed[r] >= known[r] ->
            known[r]++;
            if
            :: known[r] >= LEAST(LONGEST, prompt[r] + most[r]) -> finish(r); REMOVE(running, runs, place)
            :: else -> place++
            fi
        :: else -> place++
        fi
    :: else -> break
    od
}

inline step() {
    budget = BUDGET;
    visited = 0;
    preempted = false;
    somebody = false;
    for (i : 0 .. N - 1) { ended[i] = false; got[i] = 0; somebody = somebody || LIVE(i) }
    visit_running();
    admit();
    assert(!somebody || budget < BUDGET);                        /* PROGRESS */
    assert(runs <= SEATS);                                       /* SEATS */
    commit();
    check()
}

/* COUNT and LENGTH. */
inline check() {
    needed = frees;
    for (i : 0 .. N - 1) {
        needed = needed + held[i];
        assert(computed[i] <= LONGEST && held[i] <= CEIL_DIV(LONGEST, SIZE))
    }
    assert(needed == BLOCKS)
}

inline add(request) {
    status[request] = WAITING;
    known[request] = prompt[request];
    waiting[waits] = request;
    waits++
}

inline abort(request) {
    place = 0;
    if
    :: status[request] == RUNNING ->
        do :: running[place] == request -> break :: else -> place++ od;
        REMOVE(running, runs, place)
    :: else ->
        do :: waiting[place] == request -> break :: else -> place++ od;
        REMOVE(waiting, waits, place)
    fi;
    finish(request);
    check()
}

#define ADD(request)   d_step { (status[request] == ABSENT && !ended[request]) -> sizes(); add(request) }
#define ABORT(request) d_step { (ABORTS && LIVE(request)) -> abort(request) }

inline sizes() {
    prompt[0] = P0; prompt[1] = P1; prompt[2] = P2; prompt[3] = P3;
    most[0] = M0; most[1] = M1; most[2] = M2; most[3] = M3
}

init {
    d_step {
        frees = BLOCKS;
        for (i : 0 .. BLOCKS - 1) { queue[i] = i + 1 }
    }
    do
    :: d_step { sizes(); step() }
    :: ADD(0)
    :: ABORT(0)
#if N > 1
    :: ADD(1)
    :: ABORT(1)
#endif
#if N > 2
    :: ADD(2)
    :: ABORT(2)
#endif
#if N > 3
    :: ADD(3)
    :: ABORT(3)
#endif
    od
}
