"""One causal language model with its tokenizer: loading, prompting, sampling, log-probs.

This package does not depend on rewards or on other nodes.
"""
