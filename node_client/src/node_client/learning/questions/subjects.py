"""Classification of datasets as mathematics or code, for the two stages of SRPO.

SRPO (arXiv 2504.14286) trains on mathematics first, because mathematical answers take longer
reasoning, and adds code in the second stage. reasoning-gym does not distinguish the two, so each
dataset of the allow-list (`swarm_tasks.allowlist`) is classified by how its answer is found:

- mathematics: the answer is derived, by calculating or by reasoning from given facts. MATHEMATICS
  lists these datasets, each with the reason.
- code: the answer is the result of a procedure that is executed step by step on text, a grid, a
  graph or the state of a machine, as a program would. All other datasets are code: ciphers, puzzles
  on grids, searches in graphs, operations on lists, strings and matrices, simulated machines.
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
