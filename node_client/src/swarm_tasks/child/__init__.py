"""The verifier's child process. Only it and the gate import reasoning-gym.

`__main__` answers requests, `generators` makes tasks and scores answers (`own`: with verifiers of
this project), and `sandbox` takes away the process's rights by means of `landlock` and `seccomp`.
"""
