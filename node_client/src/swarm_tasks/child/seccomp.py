"""A seccomp filter: system calls that a verifier never needs fail with EPERM (Linux).

The module lists the calls to refuse. A list of calls to allow would break verifiers on new versions
of Python or the C library, which make other calls. The refused calls:

- reach outside the process: sockets, new processes and programs, signals to and memory of other
  processes, namespaces, mounts, and kernel interfaces that have been used to evade such filters;
- read or change files' attributes or watch files, which Landlock does not cover;
- truncate files, which Landlock covers only since Linux 6.2;
- create memory that the process's limits do not count;
- change the process's share of the processor or the disk;
- change the system, if the process runs as root.

https://docs.kernel.org/userspace-api/seccomp_filter.html; numbers from <asm/unistd.h>.
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Sequence
from typing import NamedTuple

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_LOAD, _RETURN = 0x20, 0x06
_JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _JUMP_IF_ANY_BIT = 0x15, 0x35, 0x45
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
_OFFSET_OF_NUMBER, _OFFSET_OF_ARCHITECTURE, _OFFSET_OF_ARGUMENTS = 0, 4, 16
# The x32 interface has every call again with this bit set. All of these are refused.
_X32_BIT = 0x40000000

# fmt: off
_SAME_EVERYWHERE = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431,
    "fsmount": 432, "fspick": 433, "pidfd_open": 434, "clone3": 435, "pidfd_getfd": 438,
    "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443, "process_mrelease": 448,
    "open_tree_attr": 467,
    # could open and truncate a file; the filter cannot see its flags
    "openat2": 437,
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
    "rt_sigqueueinfo": 129, "setrlimit": 160, "migrate_pages": 256, "move_pages": 279,
    "rt_tgsigqueueinfo": 297, "kcmp": 312,
    # the system, for root
    "syslog": 103, "vhangup": 153, "acct": 163, "settimeofday": 164, "swapon": 167, "swapoff": 168,
    "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173,
    "delete_module": 176, "quotactl": 179, "clock_settime": 227, "kexec_load": 246,
    "clock_adjtime": 305, "kexec_file_load": 320,
    # size and attributes of files, and notices of what becomes of them
    "truncate": 76,
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
    "rt_sigqueueinfo": 138, "setrlimit": 164, "migrate_pages": 238, "move_pages": 239,
    "rt_tgsigqueueinfo": 240, "kcmp": 272,
    # the system, for root
    "vhangup": 58, "quotactl": 60, "acct": 89, "kexec_load": 104, "delete_module": 106,
    "clock_settime": 112, "syslog": 116, "reboot": 142, "sethostname": 161, "setdomainname": 162,
    "settimeofday": 170, "swapon": 224, "swapoff": 225, "clock_adjtime": 266,
    "kexec_file_load": 294,
    # size and attributes of files, and notices of what becomes of them
    "truncate": 45,
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
# From <fcntl.h>: truncates a file while it is opened; names the process that gets a file's signals.
_O_TRUNC, _F_SETOWN, _F_SETOWN_EX = 0o1000, 8, 15


class _Condition(NamedTuple):
    """A system call that is refused if its argument at `place` passes the test."""

    number: int
    place: int
    test: int
    value: int


_CONDITIONAL = {
    "x86_64": (
        _Condition(2, 1, _JUMP_IF_ANY_BIT, _O_TRUNC),  # open
        _Condition(257, 2, _JUMP_IF_ANY_BIT, _O_TRUNC),  # openat
        _Condition(72, 1, _JUMP_IF_EQUAL, _F_SETOWN),  # fcntl
        _Condition(72, 1, _JUMP_IF_EQUAL, _F_SETOWN_EX),
    ),
    "aarch64": (
        _Condition(56, 2, _JUMP_IF_ANY_BIT, _O_TRUNC),  # openat
        _Condition(25, 1, _JUMP_IF_EQUAL, _F_SETOWN),  # fcntl
        _Condition(25, 1, _JUMP_IF_EQUAL, _F_SETOWN_EX),
    ),
}
_TO_REFUSAL = -1


class _Step(NamedTuple):
    """An instruction of the filter; a jump skips `if_true` or `if_false` instructions.

    `if_true` may be _TO_REFUSAL, the last instruction, instead.
    """

    code: int
    value: int
    if_true: int = 0
    if_false: int = 0

    def encode(self, between: int) -> bytes:
        """Return the instruction as bytes; `between` is the number of steps before the last one."""
        if_true = between if self.if_true == _TO_REFUSAL else self.if_true
        return struct.pack("<HBBI", self.code, if_true, self.if_false, self.value)


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
    refused = sorted({*_SAME_EVERYWHERE.values(), *numbers.values()})
    program = _filter_program(architecture, refused, _CONDITIONAL[machine])
    instructions = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: the count of instructions, then (aligned) their address.
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"seccomp: {os.strerror(code)}")


def _filter_program(
    architecture: int, numbers: Sequence[int], conditional: Sequence[_Condition]
) -> bytes:
    """Return a classic BPF program that refuses the system calls with these numbers.

    It also refuses the calls of `conditional` and all calls of the x32 interface. It kills a
    process that makes a call of an architecture other than `architecture`.
    """
    steps = [
        _Step(_LOAD, _OFFSET_OF_ARCHITECTURE),
        _Step(_JUMP_IF_EQUAL, architecture, if_true=1),
        _Step(_RETURN, _KILL),
        _Step(_LOAD, _OFFSET_OF_NUMBER),
        _Step(_JUMP_IF_AT_LEAST, _X32_BIT, if_true=_TO_REFUSAL),
    ]
    steps += [_Step(_JUMP_IF_EQUAL, number, if_true=_TO_REFUSAL) for number in numbers]
    for each in conditional:
        steps += [
            _Step(_JUMP_IF_EQUAL, each.number, if_false=3),
            _Step(_LOAD, _OFFSET_OF_ARGUMENTS + 8 * each.place),
            _Step(each.test, each.value, if_true=_TO_REFUSAL),
            _Step(_LOAD, _OFFSET_OF_NUMBER),
        ]
    steps += [_Step(_RETURN, _ALLOW), _Step(_RETURN, _REFUSE)]
    return b"".join(step.encode(len(steps) - 2 - place) for place, step in enumerate(steps))
