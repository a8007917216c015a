"""How sure a policy is that an answer is right, asked in words: a generative verifier.

The policy reads a question with an answer, and is asked whether that is right; what counts is how
likely it finds "yes" beside "no" (arXiv 2408.15240). SAPO (arXiv 2509.08721, section 6) names such
verifiers as future work.
"""

from collections.abc import Sequence

import torch

from node_client.model.policy import Policy

ASKED = "\nIs this answer right? Say yes or no: "
YES, NO = "yes", "no"


@torch.no_grad()
def confidences(
    policy: Policy, prompt: Sequence[int], completions: Sequence[Sequence[int]]
) -> list[float]:
    """Return, for each completion of a prompt, the probability of "yes" beside "no", in [0, 1].

    One half for all where the tokenizer cannot write the words.
    """
    asked, yes, no = (policy.completion_ids(text, "length") for text in (ASKED, YES, NO))
    if asked is None or yes is None or no is None:
        return [0.5] * len(completions)
    prompts = [[*prompt, *completion, *asked] for completion in completions for _ in range(2)]
    words = [yes, no] * len(completions)
    logprobs, _ = policy.logprobs(prompts, words)
    totals = logprobs.sum(dim=1).view(-1, 2)
    chances: list[float] = totals.softmax(dim=1)[:, 0].tolist()
    return chances
