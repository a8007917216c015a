"""Sizes of well-known causal language models, from their public config.json. Pure data."""

from typing import NamedTuple


class KnownModel(NamedTuple):
    """A model on the hub. It is `gated` if users must accept a licence there to download it.

    `layers`, `hidden` and `intermediate` are the sizes in its config.json. `parameters` is the
    number of parameters; an embedding shared by input and output is counted once.
    """

    name: str
    layers: int
    hidden: int
    intermediate: int
    parameters: int
    gated: bool = False


KNOWN_MODELS = (
    KnownModel("HuggingFaceTB/SmolLM2-135M-Instruct", 30, 576, 1536, 134_515_008),
    KnownModel("HuggingFaceTB/SmolLM2-360M-Instruct", 32, 960, 2560, 361_821_120),
    KnownModel("Qwen/Qwen2.5-0.5B-Instruct", 24, 896, 4864, 494_032_768),
    KnownModel("Qwen/Qwen3-0.6B", 28, 1024, 3072, 596_049_920),
    KnownModel("TinyLlama/TinyLlama-1.1B-Chat-v1.0", 22, 2048, 5632, 1_100_048_384),
    KnownModel("meta-llama/Llama-3.2-1B-Instruct", 16, 2048, 8192, 1_235_814_400, gated=True),
    KnownModel("Qwen/Qwen2.5-1.5B-Instruct", 28, 1536, 8960, 1_543_714_304),
    KnownModel("HuggingFaceTB/SmolLM2-1.7B-Instruct", 24, 2048, 8192, 1_711_376_384),
    KnownModel("Qwen/Qwen2.5-3B-Instruct", 36, 2048, 11008, 3_085_938_688),
    KnownModel("meta-llama/Llama-3.2-3B-Instruct", 28, 3072, 8192, 3_212_749_824, gated=True),
    KnownModel("Qwen/Qwen3-4B", 36, 2560, 9728, 4_022_468_096),
    KnownModel("Qwen/Qwen2.5-7B-Instruct", 28, 3584, 18944, 7_615_616_512),
)
