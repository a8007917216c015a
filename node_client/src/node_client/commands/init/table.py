"""Sizes of well-known causal language models, from their public config.json. Pure data."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class KnownModel:
    """A model of the Llama family's layout: grouped queries, gated MLP, RMS norms.

    `head` is the size of an attention head. `biased`: queries, keys and values have biases.
    `normed`: queries and keys are normalized per head. `tied`: input and output share the
    embeddings. `gated`: users must accept a licence on the hub.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head: int
    intermediate: int
    vocabulary: int
    tied: bool = True
    biased: bool = False
    normed: bool = False
    gated: bool = False

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        queries, keys = self.heads * self.head, self.kv_heads * self.head
        attention = 2 * self.hidden * queries + 2 * self.hidden * keys
        attention += self.biased * (queries + 2 * keys) + self.normed * 2 * self.head
        layer = attention + 3 * self.hidden * self.intermediate + 2 * self.hidden
        tables = (1 if self.tied else 2) * self.vocabulary * self.hidden
        return tables + self.layers * layer + self.hidden


KNOWN_MODELS = (
    KnownModel(
        name="HuggingFaceTB/SmolLM2-135M-Instruct",
        layers=30,
        hidden=576,
        heads=9,
        kv_heads=3,
        head=64,
        intermediate=1536,
        vocabulary=49152,
    ),
    KnownModel(
        name="HuggingFaceTB/SmolLM2-360M-Instruct",
        layers=32,
        hidden=960,
        heads=15,
        kv_heads=5,
        head=64,
        intermediate=2560,
        vocabulary=49152,
    ),
    KnownModel(
        name="Qwen/Qwen2.5-0.5B-Instruct",
        layers=24,
        hidden=896,
        heads=14,
        kv_heads=2,
        head=64,
        intermediate=4864,
        vocabulary=151936,
        biased=True,
    ),
    KnownModel(
        name="Qwen/Qwen3-0.6B",
        layers=28,
        hidden=1024,
        heads=16,
        kv_heads=8,
        head=128,
        intermediate=3072,
        vocabulary=151936,
        normed=True,
    ),
    KnownModel(
        name="TinyLlama/TinyLlama-1.1B-Chat-v1.0",
        layers=22,
        hidden=2048,
        heads=32,
        kv_heads=4,
        head=64,
        intermediate=5632,
        vocabulary=32000,
        tied=False,
    ),
    KnownModel(
        name="meta-llama/Llama-3.2-1B-Instruct",
        layers=16,
        hidden=2048,
        heads=32,
        kv_heads=8,
        head=64,
        intermediate=8192,
        vocabulary=128256,
        gated=True,
    ),
    KnownModel(
        name="Qwen/Qwen2.5-1.5B-Instruct",
        layers=28,
        hidden=1536,
        heads=12,
        kv_heads=2,
        head=128,
        intermediate=8960,
        vocabulary=151936,
        biased=True,
    ),
    KnownModel(
        name="HuggingFaceTB/SmolLM2-1.7B-Instruct",
        layers=24,
        hidden=2048,
        heads=32,
        kv_heads=32,
        head=64,
        intermediate=8192,
        vocabulary=49152,
    ),
    KnownModel(
        name="Qwen/Qwen2.5-3B-Instruct",
        layers=36,
        hidden=2048,
        heads=16,
        kv_heads=2,
        head=128,
        intermediate=11008,
        vocabulary=151936,
        biased=True,
    ),
    KnownModel(
        name="meta-llama/Llama-3.2-3B-Instruct",
        layers=28,
        hidden=3072,
        heads=24,
        kv_heads=8,
        head=128,
        intermediate=8192,
        vocabulary=128256,
        gated=True,
    ),
    KnownModel(
        name="Qwen/Qwen3-4B",
        layers=36,
        hidden=2560,
        heads=32,
        kv_heads=8,
        head=128,
        intermediate=9728,
        vocabulary=151936,
        normed=True,
    ),
    KnownModel(
        name="Qwen/Qwen2.5-7B-Instruct",
        layers=28,
        hidden=3584,
        heads=28,
        kv_heads=4,
        head=128,
        intermediate=18944,
        vocabulary=152064,
        tied=False,
        biased=True,
    ),
)
