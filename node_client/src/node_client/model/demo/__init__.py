"""How the demo bases are made: tokenizer, architecture, warm-up examples and the warm-up itself."""
