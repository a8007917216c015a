"""One causal language model with its tokenizer: loading, prompting, sampling, log-probs.

It does not depend on rewards or on other nodes.
"""
