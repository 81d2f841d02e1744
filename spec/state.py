"""What the scheduler knows between two calls."""

from __future__ import annotations

from collections import deque

from spec.pool import Key, Pool
from spec.vocabulary import Config, EncoderItem, Profile, Request, Status


class Live:
    """A request that has not finished.

    tokens     prompt and output, every token that is known
    computed   tokens whose KV exists or is being written; advanced when they are scheduled (ADV-1)
    drafts     proposals for the tokens behind the last known one
    table      the block table, append-only while the request runs
    published  leading blocks of the table that carry a prefix key
    keys       prefix keys of the leading complete blocks, as far as they were worked out (HASH-4)
    cached     encoder items whose embeddings are in the encoder cache
    limit      known tokens at which the request has reached a length cap
    """

    __slots__ = (
        "cached",
        "computed",
        "drafts",
        "grammar_ready",
        "keys",
        "known",
        "limit",
        "published",
        "request",
        "status",
        "table",
        "tokens",
    )

    def __init__(self, request: Request, max_model_len: int) -> None:
        self.request = request
        self.status = Status.WAITING_FOR_GRAMMAR if request.needs_grammar else Status.WAITING
        self.grammar_ready = False
        self.tokens = list(request.prompt_token_ids)
        self.known = len(self.tokens)
        self.limit = min(max_model_len, self.known + request.max_tokens)
        self.computed = 0
        self.drafts: tuple[int, ...] = ()
        self.table: list[int] = []
        self.published = 0
        self.keys: list[Key] = []
        self.cached: set[int] = set()

    def item(self, index: int) -> EncoderItem:
        return self.request.items[index]


class State:
    """The whole scheduler.

    running    in the order of admission; the tail is the next victim (PRE-1)
    waiting    front first; preempted requests return to the front (Q-1, PRE-3)
    key_table  every prefix key that was worked out: equal content, equal key, and only then (HASH-2)
    finished   ids that ended since the last plan (FIN-3)
    freed      encoder cache entries that were freed since the last plan
    log        (action, outcome) of every micro-step since the last `schedule` began
    """

    __slots__ = (
        "config",
        "encoder_free",
        "finished",
        "freed",
        "key_table",
        "live",
        "log",
        "pool",
        "profile",
        "running",
        "waiting",
    )

    def __init__(self, config: Config, profile: Profile) -> None:
        self.config = config
        self.profile = profile
        self.pool = Pool(config.num_blocks)
        self.live: dict[str, Live] = {}
        self.running: list[Live] = []
        self.waiting: deque[Live] = deque()
        self.key_table: dict[tuple[object, ...], Key] = {}
        self.encoder_free = config.encoder_cache_size
        self.finished: list[str] = []
        self.freed: list[tuple[str, int]] = []
        self.log: list[tuple[str, str]] = []
