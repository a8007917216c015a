"""A seccomp filter: system calls that a verifier never needs fail with EPERM (Linux).

It refuses by list instead of allowing by list: what Python and the C library call differs between
versions, and a verifier that breaks on a new one would protect nobody. The list holds what leads
out of the process: sockets, new processes and programs, signals to and memory of other processes,
namespaces, mounts, and the kernel interfaces that have been ways around such filters.

https://docs.kernel.org/userspace-api/seccomp_filter.html; numbers from <asm/unistd.h>.
"""

import ctypes
import errno
import os
import platform
import struct

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
_OFFSET_OF_NUMBER, _OFFSET_OF_ARCHITECTURE = 0, 4
# The x32 interface repeats every call with this bit set; nothing of ours uses it.
_X32_BIT = 0x40000000

# fmt: off
_SAME_EVERYWHERE = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsmount": 432,
    "pidfd_open": 434, "clone3": 435, "pidfd_getfd": 438,
}
_X86_64 = {
    "socket": 41, "connect": 42, "bind": 49, "socketpair": 53, "clone": 56, "fork": 57,
    "vfork": 58, "execve": 59, "kill": 62, "ptrace": 101, "pivot_root": 155, "chroot": 161,
    "mount": 165, "umount2": 166, "init_module": 175, "tkill": 200, "tgkill": 234, "add_key": 248,
    "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298, "prlimit64": 302,
    "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
    "finit_module": 313, "memfd_create": 319, "bpf": 321, "execveat": 322, "userfaultfd": 323,
}
_AARCH64 = {
    "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "init_module": 105, "ptrace": 117,
    "kill": 129, "tkill": 130, "tgkill": 131, "unshare": 97, "socket": 198, "socketpair": 199,
    "bind": 200, "connect": 203, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220,
    "execve": 221, "perf_event_open": 241, "prlimit64": 261, "open_by_handle_at": 265,
    "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "finit_module": 273,
    "memfd_create": 279, "bpf": 280, "execveat": 281, "userfaultfd": 282,
}
# fmt: on
_ARCHITECTURES = {
    "x86_64": (0xC000003E, _X86_64),
    "aarch64": (0xC00000B7, _AARCH64),
}


def refuse_system_calls() -> None:
    """Refuse this process the listed system calls, for good.

    Needs no_new_privs or CAP_SYS_ADMIN. Raises OSError when the kernel or the machine's
    architecture has no such filter.
    """
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no list of system calls for {machine}")
    architecture, numbers = _ARCHITECTURES[machine]
    program = _filter_program(architecture, sorted({*_SAME_EVERYWHERE.values(), *numbers.values()}))
    instructions = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: the count of instructions, then (aligned) their address.
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"seccomp: {os.strerror(code)}")


def _filter_program(architecture: int, numbers: list[int]) -> bytes:
    """Return the classic BPF program; a jump's offset counts the instructions that it skips."""
    steps = [
        _step(_LOAD, _OFFSET_OF_ARCHITECTURE),
        _step(_JUMP_IF_EQUAL, architecture, if_true=1),
        _step(_RETURN, _KILL),
        _step(_LOAD, _OFFSET_OF_NUMBER),
        _step(_JUMP_IF_AT_LEAST, _X32_BIT, if_true=len(numbers) + 1),
    ]
    steps += [
        _step(_JUMP_IF_EQUAL, number, if_true=len(numbers) - place)
        for place, number in enumerate(numbers)
    ]
    steps += [_step(_RETURN, _ALLOW), _step(_RETURN, _REFUSE)]
    return b"".join(steps)


def _step(code: int, value: int, *, if_true: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, 0, value)
