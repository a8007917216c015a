"""One causal language model with its tokenizer: loading, prompting, sampling, log-probs. No
rewards, no network.
"""
