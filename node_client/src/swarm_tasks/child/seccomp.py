"""A seccomp filter: system calls that a verifier never needs fail with EPERM (Linux).

The module lists the calls to refuse. A list of calls to allow would break verifiers on new versions
of Python or the C library, which make other calls. The refused calls:

- reach outside the process: sockets, new processes and programs, signals to and memory of other
  processes, namespaces, mounts, and kernel interfaces that have been used to evade such filters;
- read or change files' attributes or watch files, which Landlock does not cover;
- create memory that the process's limits do not count;
- change the process's share of the processor or the disk.

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
# The x32 interface has every call again with this bit set. All of these are refused.
_X32_BIT = 0x40000000

# fmt: off
_SAME_EVERYWHERE = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsmount": 432,
    "pidfd_open": 434, "clone3": 435, "pidfd_getfd": 438,
    # attributes of files
    "fchmodat2": 452, "setxattrat": 463, "getxattrat": 464, "listxattrat": 465,
    "removexattrat": 466, "file_getattr": 468, "file_setattr": 469,
    # memory that others could share
    "memfd_secret": 447,
}
_X86_64 = {
    "socket": 41, "connect": 42, "bind": 49, "socketpair": 53, "clone": 56, "fork": 57,
    "vfork": 58, "execve": 59, "kill": 62, "ptrace": 101, "pivot_root": 155, "chroot": 161,
    "mount": 165, "umount2": 166, "init_module": 175, "tkill": 200, "tgkill": 234, "add_key": 248,
    "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298, "prlimit64": 302,
    "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
    "finit_module": 313, "memfd_create": 319, "bpf": 321, "execveat": 322, "userfaultfd": 323,
    # attributes of files, and notices of what becomes of them
    "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "utime": 132,
    "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "getxattr": 191, "lgetxattr": 192,
    "fgetxattr": 193, "listxattr": 194, "llistxattr": 195, "flistxattr": 196, "removexattr": 197,
    "lremovexattr": 198, "fremovexattr": 199, "utimes": 235, "inotify_init": 253,
    "inotify_add_watch": 254, "fchownat": 260, "futimesat": 261, "fchmodat": 268,
    "utimensat": 280, "inotify_init1": 294, "fanotify_init": 300, "fanotify_mark": 301,
    # System V and POSIX memory, semaphores and queues
    "shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "semop": 65, "semctl": 66,
    "shmdt": 67, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "semtimedop": 220,
    "mq_open": 240, "mq_unlink": 241, "mq_timedsend": 242, "mq_timedreceive": 243,
    "mq_notify": 244, "mq_getsetattr": 245,
    # shares of the processor and the disk
    "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144,
    "sched_setaffinity": 203, "ioprio_set": 251, "sched_setattr": 314,
}
_AARCH64 = {
    "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "init_module": 105, "ptrace": 117,
    "kill": 129, "tkill": 130, "tgkill": 131, "unshare": 97, "socket": 198, "socketpair": 199,
    "bind": 200, "connect": 203, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220,
    "execve": 221, "perf_event_open": 241, "prlimit64": 261, "open_by_handle_at": 265,
    "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "finit_module": 273,
    "memfd_create": 279, "bpf": 280, "execveat": 281, "userfaultfd": 282,
    # attributes of files, and notices of what becomes of them
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "getxattr": 8, "lgetxattr": 9, "fgetxattr": 10,
    "listxattr": 11, "llistxattr": 12, "flistxattr": 13, "removexattr": 14, "lremovexattr": 15,
    "fremovexattr": 16, "inotify_init1": 26, "inotify_add_watch": 27, "fchmod": 52,
    "fchmodat": 53, "fchownat": 54, "fchown": 55, "utimensat": 88, "fanotify_init": 262,
    "fanotify_mark": 263,
    # System V and POSIX memory, semaphores and queues
    "mq_open": 180, "mq_unlink": 181, "mq_timedsend": 182, "mq_timedreceive": 183,
    "mq_notify": 184, "mq_getsetattr": 185, "msgget": 186, "msgctl": 187, "msgrcv": 188,
    "msgsnd": 189, "semget": 190, "semctl": 191, "semtimedop": 192, "semop": 193, "shmget": 194,
    "shmctl": 195, "shmat": 196, "shmdt": 197,
    # shares of the processor and the disk
    "ioprio_set": 30, "sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122,
    "setpriority": 140, "sched_setattr": 274,
}
# fmt: on
_ARCHITECTURES = {
    "x86_64": (0xC000003E, _X86_64),
    "aarch64": (0xC00000B7, _AARCH64),
}


def refuse_system_calls() -> None:
    """Permanently make the system calls that this module lists fail with EPERM in this thread.

    The filter also applies to threads and processes that this thread starts later. Needs
    no_new_privs or CAP_SYS_ADMIN. Raises OSError if the kernel refuses the filter, or if there is
    no list for the machine's architecture.
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
    """Return a classic BPF program that refuses the system calls with these numbers.

    It also refuses all calls of the x32 interface, and kills a process that makes a call of an
    architecture other than `architecture`.
    """
    # A jump's offset is the number of instructions that it skips.
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
