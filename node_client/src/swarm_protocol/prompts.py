"""What models are told beside a question, where nobody says otherwise."""

SYSTEM_PROMPT = (
    "Solve the problem. Think briefly if you need to, then give only the final answer between "
    "<answer> and </answer>."
)
