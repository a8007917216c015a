"""Searches a verifier's source, without running it, for calls that execute text."""

import ast
import inspect
import sys

from reasoning_gym.factory import DATASETS

_EXECUTING = frozenset({"eval", "exec", "parse_expr", "sympify"})


def executing_calls(name: str) -> list[str]:
    """Return which of `eval`, `exec`, `parse_expr` and `sympify` a dataset's verifier calls.

    The search covers `score_answer` and all functions of its module that it reaches by calls.
    """
    dataset_class = DATASETS[name][0]
    owner = next(base for base in dataset_class.__mro__ if "score_answer" in vars(base))
    module = ast.parse(inspect.getsource(sys.modules[owner.__module__]))
    functions = {node.name: node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)}
    reached, waiting, found = set(), ["score_answer"], set()
    while waiting:
        current = waiting.pop()
        if current in reached:
            continue
        reached.add(current)
        for call in _called_names(functions[current]):
            if call in functions:
                waiting.append(call)
            elif call in _EXECUTING:
                found.add(call)
    return sorted(found)


def _called_names(function: ast.FunctionDef) -> set[str]:
    called = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return {
        target.id if isinstance(target, ast.Name) else target.attr
        for target in called
        if isinstance(target, ast.Name | ast.Attribute)
    }
