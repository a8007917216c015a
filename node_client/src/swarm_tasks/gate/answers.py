"""Texts that the gate and the tests score as answers, to find faults of verifiers."""

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

# Fixed answers that a policy may learn to give to every question.
CONSTANTS = (
    *("0", "1", "2", "3", "4", "5", "10", "-1", "0.5", "True", "False", "true", "false"),
    *("Yes", "No", "yes", "no", "YES", "NO", "A", "B", "C", "D", "a", "x", "x = 0", "[0]", "1 2 3"),
    *("6*4*1*1", "(0, 0)", "Monday", "infeasible", "impossible", "unknown", "on", "off", "knight"),
    # numbers, in ranges that questions ask for
    *(str(number) for number in (*range(6, 10), *range(11, 31), 50, 60, 64, 99, 100, 128, 1000)),
    *("-2", "-3", "-10", "0.0", "1.0", "0.1", "0.25", "0.75", "0.33", "1.5", "2.0", "3.14", "1e3"),
    *("1/2", "1/3", "1/1", "0/1", "50%", "1 + 1", "0 + 0i", "1 + 1i", "1,000", "0x0", "0b1", "I"),
    # times and durations
    *("1:1:1", "0:0:0", "1:1", "0:0", "00:00", "00:01", "01:00", "12:00", "00:00:00", "01:01:01"),
    *("00:00:00.000", "1 day", "1 days", "0 days", "1 day, 1:1:1", "1 day, 01:00:00", "2023-01-01"),
    # rows, lists and grids
    *("0 0", "0 1", "1 0", "1 1", "1 2", "2 1", "3 2 1", "0 0 0", "1 1 1", "0, 0", "1, 2", "1,2,3"),
    *("[1]", "[0, 0]", "[1, 2]", "[1, 2, 3]", "[[0]]", "[[1]]", "[(0, 0)]", "[true]", '["a"]'),
    *("0\n0", "1\n1", "1 2\n2 1", "1 2 3 4\n3 4 1 2\n2 1 4 3\n4 3 2 1", ". .", "#", "_", "()"),
    # words
    *("none", "null", "empty", "nothing", "all", "both", "neither", "equal", "same", "different"),
    *("maybe", "undetermined", "invalid", "valid", "possible", "feasible", "north", "south", "up"),
    *("down", "left", "right", "L", "R", "U", "UDLR", "red", "blue", "green", "Sunday", "Friday"),
    *("Tuesday", "January", "father", "mother", "son", "brother", "sister", "knave", "Alice"),
    *("Bob", "the", "e", "i", "s", "E", "S", "Z", "P", "Q", "aa", "ab", "abc", "x = 1", "y = 0"),
    "x = -1",
)

# What people and models put around an answer, which {} stands for.
WRAPPINGS = (
    *("{}", "{}.", "${}$", "$${}$$", "\\({}\\)", "**{}**", "*{}*", "_{}_", "`{}`", '"{}"', "'{}'"),
    *("“{}”", "\\boxed{{{}}}", "$\\boxed{{{}}}$", "\\text{{{}}}", "```\n{}\n```"),
    "```text\n{}\n```",
    *("The answer is {}", "The answer is {}.", "Answer: {}", "**Answer:** {}", "Final answer: {}"),
    *("So, the final answer is: **{}**.", "The answer is **$\\boxed{{{}}}$**."),
)

# EMPTY: wrappings without content. HEDGES: several answers at once.
EMPTY = (
    *(wrapping.format(inside) for wrapping in WRAPPINGS[1:] for inside in ("", " ")),
    *("...", "$", "```", "\\boxed", "\\boxed{", "}", '""""', "Answer", "Answer:"),
)
HEDGES = (
    *("0 or 1", "**0** or **1**", "$0$ $1$", '"yes", "no"', "`yes` or `no`", "True/False", "A. B."),
    *("\\boxed{0} or \\boxed{1}", "The answer is 0 or 1.", "Answer: 0. Answer: 1"),
    *("**Answer:** A/B", "0. 1. 2.", "'0', '1'", "The answer is yes. The answer is no."),
    "\\text{yes} \\text{no}",
)

# Texts that must not become right when wrappings are removed.
NEVER_RIGHT = (*JUNK, *HANGING, *EXECUTING, *EMPTY, *HEDGES)
