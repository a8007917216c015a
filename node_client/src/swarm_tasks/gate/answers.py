"""Texts that the gate (and the tests) hand to verifiers as answers."""

CANARY = "SWARM_TASKS_CANARY"

# Sets an environment variable if anything evaluates it, and harms nobody.
_PAYLOAD = f"__import__('os').environ.__setitem__('{CANARY}','1')"

EXECUTING = (
    _PAYLOAD,
    f"[{_PAYLOAD}]",
    f"[[{_PAYLOAD}]]",
    f"({_PAYLOAD},)",
    f"0+({_PAYLOAD} or 0)",
    f"{{'a': {_PAYLOAD}}}",
    f"exec({_PAYLOAD!r})",
)

HANGING = (
    "9**9**9**9",
    "[9**9**9**9]",
    "U99999999",
    "(" * 5000 + ")" * 5000,
    "[" * 5000,
    "-" * 5000 + "1",
    "1e999999999",
    "9" * 6000,
    "x**99999999",
    "factorial(99999999)",
    "a " * 5000,
    "->".join(["A"] * 3000),
)

JUNK = (
    "",
    "asdf",
    "I do not know",
    "\\boxed{?}",
    "{}",
    "[]",
    "None",
    "nan",
    "inf",
    "!@#$%^&*()_+",
    "<answer>",
    "\ud7ff\u200b\u202e",
    "lorem ipsum dolor sit amet " * 20,
)

# Answers of one's whole life: what a policy may learn to say to every question.
CONSTANTS = (
    *("0", "1", "2", "3", "4", "5", "10", "-1", "0.5", "True", "False", "true", "false"),
    *("Yes", "No", "yes", "no", "YES", "NO", "A", "B", "C", "D", "a", "x", "x = 0", "[0]", "1 2 3"),
    *("6*4*1*1", "(0, 0)", "Monday", "infeasible", "impossible", "unknown", "on", "off", "knight"),
)

# What people and models put around an answer; {} stands for it.
WRAPPINGS = (
    *("{}", "{}.", "${}$", "$${}$$", "\\({}\\)", "**{}**", "*{}*", "_{}_", "`{}`", '"{}"', "'{}'"),
    *(
        "“{}”",
        "\\boxed{{{}}}",
        "$\\boxed{{{}}}$",
        "\\text{{{}}}",
        "```\n{}\n```",
        "```text\n{}\n```",
    ),
    *("The answer is {}", "The answer is {}.", "Answer: {}", "**Answer:** {}", "Final answer: {}"),
    *("So, the final answer is: **{}**.", "The answer is **$\\boxed{{{}}}$**."),
)

# Wrappings with nothing in them, and several answers at once.
EMPTY = (
    *(wrapping.format(inside) for wrapping in WRAPPINGS[1:] for inside in ("", " ")),
    *(
        "...",
        "$",
        "**",
        "``",
        "```",
        "****",
        "\\boxed",
        "\\boxed{",
        "}",
        '""""',
        "Answer",
        "Answer:",
    ),
)
HEDGES = (
    *("0 or 1", "**0** or **1**", "$0$ $1$", '"yes", "no"', "`yes` or `no`", "True/False", "A. B."),
    *(
        "\\boxed{0} or \\boxed{1}",
        "The answer is 0 or 1.",
        "Answer: 0. Answer: 1",
        "**Answer:** A/B",
    ),
    *("0. 1. 2.", "'0', '1'", "The answer is yes. The answer is no.", "\\text{yes} \\text{no}"),
)

# No text of these becomes right by being unwrapped.
NEVER_RIGHT = (*JUNK, *HANGING, *EXECUTING, *EMPTY, *HEDGES)
