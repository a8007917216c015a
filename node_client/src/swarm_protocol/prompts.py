"""The default system prompt, for seasons that set none."""

SYSTEM_PROMPT = (
    "Solve the problem. Think briefly if you need to, then give only the final answer between "
    "<answer> and </answer>."
)
