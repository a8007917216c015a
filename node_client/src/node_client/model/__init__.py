"""One causal language model with its tokenizer: loading, prompting, sampling, log-probs.

Knows no rewards and no other nodes.
"""
