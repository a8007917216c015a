"""A search of completions for phrases in which a model reflects on its own reasoning.

SRPO (arXiv 2504.14286) tracks three patterns during training: the model checks a result again
(recheck), doubts what it wrote (hesitation), or tries another way (exploration). The paper's public
material has no list of phrases, so this lexicon is the project's own: phrases that change a line of
reasoning, in English and Chinese. A pattern counts once for each completion, however often it
occurs.

A match does not prove reflection: a model may write "let me check" and check nothing.
"""

import re
from collections.abc import Mapping, Sequence
from statistics import fmean

from swarm_protocol.messages import Reflection

# English phrases match as whole words in any case; Chinese ones anywhere, because Chinese text has
# no spaces. Words that may come from a question ("try", "maybe", "check") do not count alone, only
# in a phrase about one's own work.
LEXICON: Mapping[Reflection, tuple[str, ...]] = {
    "recheck": (
        *("let me check", "let's check", "let me double-check", "let me double check"),
        *("double-check", "double check", "check again", "let me verify", "let's verify"),
        *("verify this", "verify that", "verify the result", "to verify", "recheck", "re-check"),
        *("recalculate", "re-calculate", "re-examine", "let me review", "go over this again"),
        *("检查一下", "再检查", "重新检查", "验证一下", "再验证"),
        *("核对一下", "再算一遍", "重新计算", "复查"),
    ),
    "hesitation": (
        *("wait", "hold on", "hmm", "i'm not sure", "i am not sure", "not so sure"),
        *("that doesn't seem right", "that does not seem right", "that can't be right"),
        *("that's not right", "that is not right", "i made a mistake", "i may be wrong"),
        *("i might be wrong", "something is wrong", "on second thought"),
        *("等等", "等一下", "不对", "不确定", "好像不"),
        *("似乎不对", "可能错了", "我错了", "哪里出错"),
    ),
    "exploration": (
        *("alternatively", "another way", "another approach", "a different approach"),
        *("a different way", "another method", "a different method", "try another"),
        *("let me try", "let's try", "what if we", "what if i", "instead, let", "or perhaps"),
        *("或者我们", "或者可以", "换一种", "换个", "另一种"),
        *("另一个方法", "尝试另", "试试", "不妨", "如果我们"),
    ),
}


def _compile(phrases: Sequence[str]) -> re.Pattern[str]:
    english = [re.escape(phrase) for phrase in phrases if phrase.isascii()]
    chinese = [re.escape(phrase) for phrase in phrases if not phrase.isascii()]
    return re.compile(rf"\b(?:{'|'.join(english)})\b|{'|'.join(chinese)}", re.IGNORECASE)


_PATTERNS: Mapping[Reflection, re.Pattern[str]] = {
    name: _compile(phrases) for name, phrases in LEXICON.items()
}


def find_patterns(text: str) -> set[Reflection]:
    """Return the patterns of LEXICON with at least one phrase in a completion's text."""
    plain = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return {name for name, pattern in _PATTERNS.items() if pattern.search(plain)}


def reflection_shares(texts: Sequence[str]) -> dict[Reflection, float]:
    """Return for each pattern the share of completions with it. Needs at least one text."""
    found = [find_patterns(text) for text in texts]
    return {name: fmean(name in patterns for patterns in found) for name in LEXICON}
