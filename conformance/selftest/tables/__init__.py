"""The sabotages, a table for each part of the scheduler."""

from __future__ import annotations

from conformance.selftest.sabotage import Sabotage
from conformance.selftest.tables.admission import ADMISSION
from conformance.selftest.tables.blocks import BLOCKS
from conformance.selftest.tables.encoder import ENCODER
from conformance.selftest.tables.endings import ENDINGS
from conformance.selftest.tables.prefixes import PREFIXES
from conformance.selftest.tables.running import RUNNING

SABOTAGES: tuple[Sabotage, ...] = (*RUNNING, *ADMISSION, *BLOCKS, *PREFIXES, *ENCODER, *ENDINGS)
