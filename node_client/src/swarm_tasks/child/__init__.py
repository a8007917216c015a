"""The verifier's child process: the only place, with the gate, that imports reasoning-gym.

`__main__` answers requests, `generators` makes tasks and scores answers, and `sandbox` takes away
the process's rights with the help of `landlock` and `seccomp`.
"""
