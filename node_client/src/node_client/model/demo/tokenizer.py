"""The tokenizer of the demo bases: a token for each byte, answer tag and common phrase."""

from tokenizers import AddedToken
from tokenizers.pre_tokenizers import ByteLevel
from transformers import Qwen2Tokenizer

ANSWER_TAGS = ("<answer>", "</answer>")
PAD, EOS = "<pad>", "<eos>"

# Common parts of the starter tasks' questions. As single tokens they make a question several times
# shorter, which is faster and easier for small models; other questions are spelled out.
PHRASES = (
    "State the final answer to the following arithmetic problem: ",
    "Solve the following multiplication: ",
    "Find the Greatest Common Divisor (GCD) of these numbers: ",
    "Spell this word backward (example: sun -> nus): ",
    ". Give only the result as your final answer.",
    ". Give only the GCD as your final answer.",
)

# The demo bases are too small to read instructions: a prompt is the question and a separator.
CHAT_TEMPLATE = (
    "{% for message in messages if message.role == 'user' %}{{ message.content }}\n{% endfor %}"
)


def build_tokenizer() -> Qwen2Tokenizer:
    """Return a tokenizer with a token for each UTF-8 byte, answer tag and common phrase.

    It has no merges. Its class is Qwen2's: when transformers loads a saved tokenizer, it chooses
    the class by the model's architecture, which is Qwen2. Tags and phrases are ordinary tokens, so
    that decoding does not skip them.
    """
    alphabet = [PAD, EOS, *sorted(ByteLevel.alphabet())]
    tokenizer = Qwen2Tokenizer(
        vocab={token: number for number, token in enumerate(alphabet)},
        merges=[],
        unk_token=PAD,
        eos_token=EOS,
        pad_token=PAD,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in (*ANSWER_TAGS, *PHRASES)])
    return tokenizer
