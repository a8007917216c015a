"""The verifier's child process: the only place, with the gate, that imports reasoning-gym.

`__main__` answers requests, `generators` makes and scores tasks, and `sandbox` locks the process in
with the help of `landlock` and `seccomp`.
"""
