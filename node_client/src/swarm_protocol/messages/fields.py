"""The types of the messages' fields, and the limits of their sizes."""

from typing import Annotated, Literal

from msgspec import Meta

# ---- sizes, in characters or items; a frame's bytes are limited too (codec.MAX_FRAME_BYTES)
MAX_COMPLETION_CHARS = 16_384
MAX_COMPLETIONS = 64
MAX_ROLLOUTS = 32
MAX_REQUESTED = 64
# Maximum size of a rollout as JSON. It limits the pool's memory, and lets many fit into one frame.
MAX_ROLLOUT_BYTES = 1 << 17
MAX_ANSWERS = 256
MAX_USED = 256
MAX_REASONS = 16
# The packed log-probs of 16,384 tokens.
MAX_LOGPROBS_CHARS = 43_692

# NUL is allowed in JSON but not in Postgres' texts, so messages with it are refused.
NO_NUL = r"^[^\x00]*\Z"

# Names are shown within lines of pages and panels, so they must not break the line or change the
# direction of what follows. Not allowed: control characters (Cc), line and paragraph separators,
# and Unicode's Bidi_Control (https://www.unicode.org/reports/tr9/). Joiners are allowed, because
# some scripts need them. More than three combining marks in a row, which would cover other lines,
# are not.
_NO_PILES = (
    r"(?!.*[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})"
)
_NO_CONTROLS = r"[^\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+\Z"
Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=f"^{_NO_PILES}{_NO_CONTROLS}")]
Id = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}\Z")]
Text = Annotated[str, Meta(max_length=MAX_COMPLETION_CHARS, pattern=NO_NUL)]
# A completion in a rollout. It needs no pattern: the codec refuses frames with NUL, which is faster
# for a frame with hundreds of completions.
CompletionText = Annotated[str, Meta(max_length=MAX_COMPLETION_CHARS)]
# Ed25519 (RFC 8032), in lower-case hex.
PublicKey = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Signature = Annotated[str, Meta(pattern=r"^[0-9a-f]{128}\Z")]
PackedLogprobs = Annotated[
    str, Meta(max_length=MAX_LOGPROBS_CHARS, pattern=r"^[A-Za-z0-9+/]*={0,2}\Z")
]
Logprob = Annotated[float, Meta(ge=-1e6, le=0)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Share = Annotated[float, Meta(ge=0, le=1)]
Index = Annotated[int, Meta(ge=0, lt=2**31)]

Arm = Literal["swarm", "isolated", "base"]
Assignment = Literal["choice", "coin"]
Preference = Literal["any", "informative", "by_node", "by_task", "fresh"]
StandingRemark = Literal["", "too_few", "often_absent", "base", "quarantined"]
FinishReason = Literal["stop", "length"]
Reflection = Literal["recheck", "hesitation", "exploration"]
RoundPhase = Literal["scheduled", "open", "scoring", "closed", "void"]
ConfigValue = bool | int | float | Annotated[str, Meta(max_length=64)] | list[str]
Config = Annotated[dict[Name, ConfigValue], Meta(max_length=32)]
