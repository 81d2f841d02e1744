"""An external KV store that holds, of each prompt, the prefix that its request names.

Registered through vLLM's `KVConnectorFactory` and built by the scheduler itself.  Only the
scheduler's side exists: nothing is loaded or saved here.
"""

from __future__ import annotations

from typing import Any

from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1, KVConnectorMetadata, KVConnectorRole

NAME = "PromptPrefixConnector"


class PromptPrefixConnector(KVConnectorBase_V1):  # type: ignore[misc]
    """Answers at once, and remembers what the scheduler decided to load in this step."""

    def __init__(self, vllm_config: Any, role: KVConnectorRole) -> None:
        super().__init__(vllm_config, role)
        self.available: dict[str, int] = {}
        self.loaded: dict[str, int] = {}

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> int:
        return max(0, self.available[request.request_id] - num_computed_tokens)

    def update_state_after_alloc(self, request: Any, num_external_tokens: int) -> None:
        self.loaded[request.request_id] = num_external_tokens

    def build_connector_meta(self, scheduler_output: Any) -> KVConnectorMetadata:
        return KVConnectorMetadata()

    def take_loaded(self) -> dict[str, int]:
        """Tokens to load for each request admitted since the last call."""
        loaded, self.loaded = self.loaded, {}
        return loaded

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        raise NotImplementedError("no worker runs here")

    def wait_for_layer_load(self, layer_name: str) -> None:
        raise NotImplementedError("no worker runs here")

    def save_kv_layer(self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any) -> None:
        raise NotImplementedError("no worker runs here")

    def wait_for_save(self) -> None:
        raise NotImplementedError("no worker runs here")


KVConnectorFactory.register_connector(NAME, __name__, PromptPrefixConnector.__name__)
