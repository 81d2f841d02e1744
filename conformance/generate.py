"""Runs under pressure, drawn one choice at a time.

Every draw is valid by construction.  Sizes are tiny and chosen against each other: pools that hold one and
a half requests, budgets below a prompt, prompts that share prefixes cut at block boundaries, outputs that
reach the model length.  Choices come from a `Draw`, so that Hypothesis and a seeded walk use the same text.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from spec.events import Add, Event, GrammarReady
from spec.formulas import ceil_div
from spec.model import Script
from spec.moves import NOBODY, Move, event, possible
from spec.observer import Observer
from spec.validity import check_config, check_request
from spec.vocabulary import Config, EncoderItem, Request

T = TypeVar("T")

EOS, STOP_ID, PLACEHOLDER = 0, 4, 9
WORDS = (1, 2, 3)


class Draw(Protocol):
    """A source of choices; small numbers are the simple ones."""

    def integer(self, low: int, high: int) -> int: ...


class Seeded:
    """Choices from a seed, for volume."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


def chance(draw: Draw, percent: int) -> bool:
    """True with `percent` in a hundred; False is the simple choice."""
    return draw.integer(0, 99) >= 100 - percent


def pick(draw: Draw, values: Sequence[T]) -> T:
    return values[draw.integer(0, len(values) - 1)]


# --- configurations ------------------------------------------------------------------------------

FEATURES = ("speculation", "eagle", "adapters", "encoder", "connector")


def draw_config(draw: Draw, capabilities: frozenset[str]) -> Config:
    """A tiny configuration; features beyond `capabilities` stay off."""
    wanted = [name for name in FEATURES if name in capabilities and chance(draw, 25)]
    block_size = draw.integer(1, 4)
    seats = draw.integer(1, 5)
    longest = draw.integer(4, 32)
    drafts = draw.integer(1, 4) if {"speculation", "eagle"} & set(wanted) else 0
    eagle = "eagle" in wanted
    least_blocks = ceil_div(1 + drafts * (2 if eagle else 1), block_size)
    whole = ceil_div(longest, block_size)
    usable = max(least_blocks, draw.integer(1, 2 * whole))
    encoder = draw.integer(1, 10) if "encoder" in wanted else 0
    threshold = draw.integer(1, 8) if chance(draw, 30) else 0
    return check_config(
        Config(
            num_blocks=usable + 1,
            block_size=block_size,
            max_num_batched_tokens=seats + draw.integer(0, 20),
            max_num_seqs=seats,
            max_model_len=longest,
            long_prefill_token_threshold=threshold,
            enable_prefix_caching=not chance(draw, 12),
            num_speculative_tokens=drafts,
            use_eagle=eagle,
            max_loras=draw.integer(1, 2) if "adapters" in wanted else 0,
            max_num_encoder_input_tokens=encoder + draw.integer(0, 3) if encoder else 0,
            encoder_cache_size=encoder + draw.integer(0, 5) if encoder else 0,
            disable_chunked_mm_input=bool(encoder) and chance(draw, 40),
            use_connector="connector" in wanted,
        )
    )


# --- requests ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Text:
    """A prompt that was used, with what was said to it: what later requests share a prefix with."""

    prompt: tuple[int, ...]
    output: tuple[int, ...]
    items: tuple[EncoderItem, ...]


@dataclass
class Author:
    """Draws requests for one run and remembers their texts."""

    config: Config
    capabilities: frozenset[str]
    library: list[Text] = field(default_factory=list)

    def draw_request(self, draw: Draw) -> Add:
        """A request that fits alone; every fifth is the twin of an earlier one."""
        config = self.config
        twin = pick(draw, self.library) if self.library and chance(draw, 20) else None
        text = twin or self._draw_text(draw, self._draw_length(draw))
        max_tokens = draw.integer(1, self._most_tokens(len(text.prompt)))
        output = twin.output if twin else self._draw_output(draw, max_tokens)
        self.library.append(Text(text.prompt, output, text.items))
        request = Request(
            request_id=f"r{len(self.library) - 1}",
            prompt_token_ids=text.prompt,
            max_tokens=max_tokens,
            eos_token_id=EOS,
            ignore_eos=chance(draw, 15),
            stop_token_ids=(STOP_ID,) if chance(draw, 40) else (),
            lora_id=draw.integer(0, 3) if config.max_loras else 0,
            items=text.items,
            needs_grammar="grammar" in self.capabilities and chance(draw, 10),
            prompt_logprobs="prompt_logprobs" in self.capabilities and chance(draw, 6),
            external_tokens=draw.integer(0, len(text.prompt) - 1) if config.use_connector and chance(draw, 50) else 0,
        )
        return Add(check_request(request, config), Script(output, self._draw_drafts(draw)))

    @property
    def _slots(self) -> int:
        """Slots of the pool that one request can fill with tokens and drafts."""
        return (self.config.num_blocks - 1) * self.config.block_size - self.config.lookahead

    def _most_tokens(self, prompt: int) -> int:
        """The most output tokens with which a prompt of that length fits alone, if not the model length ends it."""
        if self.config.max_model_len <= self._slots:
            return self.config.max_model_len
        return self._slots - self.config.num_speculative_tokens - prompt + 1

    def _draw_length(self, draw: Draw) -> int:
        """A prompt length, often near the longest that fits."""
        fits_whole = self.config.max_model_len <= self._slots
        longest = self.config.max_model_len if fits_whole else self._slots - self.config.num_speculative_tokens
        near_the_end = chance(draw, 15)
        return longest - draw.integer(0, min(2, longest - 1)) if near_the_end else draw.integer(1, longest)

    def _draw_text(self, draw: Draw, length: int) -> Text:
        """A prompt that shares a prefix with an earlier text, cut at or beside a block boundary."""
        prefix: tuple[int, ...] = ()
        items: tuple[EncoderItem, ...] = ()
        if self.library and chance(draw, 70):
            source = pick(draw, self.library)
            said = (*source.prompt, *source.output)
            blocks = draw.integer(1, max(1, len(said) // self.config.block_size))
            cut = min(blocks * self.config.block_size + pick(draw, (0, 0, 0, 1, -1)), length, len(said))
            torn = [item.offset for item in source.items if item.offset < cut < item.end]
            prefix = said[: max(min([cut, *torn]), 0)]
            items = tuple(self._other_content(draw, item) for item in source.items if item.end <= len(prefix))
        words = tuple(pick(draw, WORDS) for _ in range(length - len(prefix)))
        text = Text(prefix + words, (), items)
        return self._with_items(draw, text, len(prefix)) if self.config.encoder_cache_size else text

    def _other_content(self, draw: Draw, item: EncoderItem) -> EncoderItem:
        """Now and then something else is shown in the same place."""
        return item._replace(content=10 * item.length + draw.integer(0, 1)) if chance(draw, 30) else item

    def _with_items(self, draw: Draw, text: Text, start: int) -> Text:
        """The text with a few encoder items behind `start`; equal placeholders, different contents.

        Prompts are cut only between items: a placeholder outside an item does not occur, and a prefix key,
        which names items without their offsets, would not tell it from one inside.
        """
        config = self.config
        longest = min(config.encoder_cache_size, config.max_num_encoder_input_tokens)
        if config.disable_chunked_mm_input:
            chunk = min(config.max_num_batched_tokens, config.long_prefill_token_threshold or config.max_model_len)
            longest = min(longest, chunk)
        prompt, items = list(text.prompt), list(text.items)
        for _ in range(draw.integer(0, 3)):
            offset = start + draw.integer(0, 3)
            length = draw.integer(1, longest)
            if offset + length > len(prompt):
                break
            items.append(EncoderItem(offset, length, content=10 * length + draw.integer(0, 1)))
            prompt[offset : offset + length] = [PLACEHOLDER] * length
            start = offset + length
        return Text(tuple(prompt), (), tuple(items))

    def _draw_output(self, draw: Draw, length: int) -> tuple[int, ...]:
        """What is said; an end of sequence or a stop token comes somewhere, often beyond the cap."""
        words = [pick(draw, WORDS) for _ in range(length)]
        if chance(draw, 50):
            words[draw.integer(0, length - 1)] = pick(draw, (EOS, STOP_ID))
        return tuple(words)

    def _draw_drafts(self, draw: Draw) -> tuple[tuple[int, int], ...]:
        most = self.config.num_speculative_tokens
        if not most:
            return ()
        return tuple((draw.integer(0, most), draw.integer(0, most)) for _ in range(draw.integer(1, 3)))


# --- events --------------------------------------------------------------------------------------

MOST_LIVE = 8

WEIGHTS = {"step": 14, "add": 6, "abort anyone": 1, "grammar ready": 4, "reset": 1}
"""Mostly steps, additions while there is room, and now and then the rest."""


def can_happen(observer: Observer, capabilities: frozenset[str]) -> dict[str, Sequence[str]]:
    """The kinds of event that are possible next, each with its targets; whoever comes is still to be made up."""
    arrivals = (NOBODY,) if len(observer.live) < MOST_LIVE else ()
    allowed = [kind for kind in WEIGHTS if kind != "reset" or "reset" in capabilities]
    return possible(observer, arrivals, allowed)


def draw_event(draw: Draw, author: Author, observer: Observer) -> Event:
    """What happens next, by weight."""
    targets = can_happen(observer, author.capabilities)
    kind = pick(draw, [kind for kind in targets for _ in range(WEIGHTS[kind])])
    target = NOBODY if targets[kind] == (NOBODY,) else pick(draw, targets[kind])
    return event(Move(kind, target), lambda _: author.draw_request(draw))


def drain(observer: Observer) -> list[Event]:
    """Events that let everybody who waits for a grammar go on."""
    return [GrammarReady(i) for i, seen in observer.live.items() if not seen.grammar_ready]
