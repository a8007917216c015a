"""Which datasets are like mathematics and which like code, for the two stages of SRPO.

SRPO (arXiv 2504.14286) trains on mathematics first, because its answers take longer reasoning, and
adds code in the second stage. It has two corpora. reasoning-gym has neither, so each dataset of the
allow-list (`swarm_tasks.allowlist`) is classified here, with a reason, by how its answer is found:

- mathematics: the answer is derived, by calculating or by reasoning from given facts;
- code: the answer is the result of a procedure that is executed step by step on text, a grid, a
  graph or the state of a machine, as a program would.
"""

from collections.abc import Mapping

MATHEMATICS: Mapping[str, str] = {
    "acre": "infers which objects switch a light from observations",
    "advanced_geometry": "calculates points and angles of triangles",
    "aiw": "counts relatives or friends by reasoning about who belongs where",
    "basic_arithmetic": "evaluates an expression",
    "calendar_arithmetic": "calculates with dates",
    "chain_sum": "adds and subtracts",
    "circuit_logic": "evaluates a Boolean expression",
    "count_bits": "converts a number to binary",
    "count_primes": "finds which numbers of a range are prime",
    "cryptarithm": "solves digits from an addition",
    "decimal_arithmetic": "evaluates an expression with decimals",
    "decimal_chain_sum": "adds and subtracts decimals",
    "dice": "calculates a probability",
    "family_relationships": "deduces how two people are related",
    "fraction_simplification": "reduces a fraction",
    "gcd": "finds a greatest common divisor",
    "gsm_symbolic": "solves a word problem",
    "knights_knaves": "deduces who tells the truth",
    "lcm": "finds a least common multiple",
    "leg_counting": "multiplies and adds from a word problem",
    "modulo_grid": "finds the arithmetic rule behind a pattern",
    "number_format": "compares numbers in different notations",
    "polynomial_equations": "solves an equation",
    "power_function": "calculates a power",
    "prime_factorization": "factors a number",
    "products": "multiplies",
    "propositional_logic": "deduces what follows from premises",
    "self_reference": "deduces which statements about each other can hold",
    "simple_equations": "solves an equation",
    "simple_geometry": "calculates an angle of a polygon",
    "syllogism": "deduces whether a conclusion follows",
    "time_intervals": "calculates with times",
    "zebra_puzzles": "deduces who has what from clues",
}

CODE: Mapping[str, str] = {
    "ab": "applies rewriting rules until none fits",
    "arc_1d": "finds a transformation of cells and carries it out",
    "base_conversion": "carries out a conversion digit by digit",
    "bf": "runs a program",
    "binary_alternation": "counts the swaps that an algorithm makes on a string",
    "binary_matrix": "searches the nearest zero from each cell of a grid",
    "caesar_cipher": "decodes a text letter by letter",
    "color_cube_rotation": "follows a cube's state through rotations",
    "course_schedule": "looks for a cycle in a graph",
    "emoji_mystery": "decodes bytes hidden in text",
    "figlet_font": "reads letters from a character grid",
    "group_anagrams": "groups words by their sorted letters",
    "jugs": "searches the states of jugs for a target",
    "kakurasu": "searches a grid under constraints",
    "largest_island": "searches connected cells in a grid",
    "letter_counting": "counts characters of a text",
    "letter_jumble": "restores the order of letters",
    "mahjong_puzzle": "follows a hand of cards through rounds",
    "manipulate_matrix": "carries out operations on a matrix",
    "maze": "searches a shortest path in a grid",
    "mini_sudoku": "searches a grid under constraints",
    "needle_haystack": "looks up one statement in a long list",
    "number_filtering": "filters a list",
    "palindrome_generation": "builds a string with a property",
    "palindrome_partitioning": "enumerates partitions of a string",
    "path_star": "searches a path in a graph",
    "pool_matrix": "carries out max or average pooling on a matrix",
    "quantum_lock": "searches button presses that reach a state",
    "rectangle_count": "finds shapes in a character grid",
    "rotate_matrix": "rotates a matrix",
    "rotten_oranges": "simulates a spread over a grid",
    "sentence_reordering": "restores the order of words",
    "shortest_path": "searches a shortest path in a grid",
    "spell_backward": "reverses a string",
    "string_manipulation": "applies rewriting rules to a string",
    "string_splitting": "simulates a machine with rules",
    "string_synthesis": "simulates a machine with rules",
    "sudoku": "searches a grid under constraints",
    "survo": "searches a grid under constraints",
    "tower_of_hanoi": "carries out a recursive procedure",
    "tsumego": "searches moves on a board",
    "word_sequence_reversal": "reverses a list",
    "word_sorting": "sorts a list by character codes",
}
