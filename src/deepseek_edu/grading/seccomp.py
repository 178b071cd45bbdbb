"""A system-call filter for the grader's child process (Linux on x86-64 and ARM64), through ctypes.

It refuses, with "operation not permitted", what no exercise needs: new processes, sockets, signals to other
processes, tracing, changing other processes' limits or priorities, namespaces and mounts. Threads stay allowed. The
calls are numbers of the kernel's tables for each machine.
"""

import ctypes
import os
import platform

_CALLS = {  # name: number on x86-64, number on ARM64
    "clone": (56, 220),
    "clone3": (435, 435),
    "socket": (41, 198),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "pidfd_open": (434, 434),
    "execve": (59, 221),
    "execveat": (322, 281),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "prlimit64": (302, 261),
    "setpriority": (141, 140),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "chroot": (161, 51),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "shmget": (29, 194),
}
_MACHINES = {
    "x86_64": (0xC000003E, {name: numbers[0] for name, numbers in _CALLS.items()} | {"fork": 57, "vfork": 58}),
    "aarch64": (0xC00000B7, {name: numbers[1] for name, numbers in _CALLS.items()}),
}

_LOAD, _EQUAL, _GREATER_EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE, _NO_SUCH_CALL = 0x7FFF0000, 0x00050001, 0x00050026
_AT_NUMBER, _AT_MACHINE, _AT_FIRST_ARGUMENT = 0, 4, 16
_CLONE_THREAD = 0x00010000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER = 38, 22, 2


class _Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint32)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Instruction))]


def program(machine, own_pid):
    """The filter as a list of ``(code, jump if true, jump if false, constant)``; None for an unknown machine."""
    if machine not in _MACHINES:
        return None
    audit, numbers = _MACHINES[machine]
    code = [(_LOAD, 0, 0, _AT_MACHINE), (_EQUAL, 1, 0, audit), (_RETURN, 0, 0, _REFUSE), (_LOAD, 0, 0, _AT_NUMBER)]
    if machine == "x86_64":  # the x32 numbers reach the same calls
        code += [(_GREATER_EQUAL, 0, 1, 0x40000000), (_RETURN, 0, 0, _REFUSE)]
    for name, number in numbers.items():
        if name == "clone":  # with CLONE_THREAD it makes a thread, without it a process
            code += [
                (_EQUAL, 0, 4, number),
                (_LOAD, 0, 0, _AT_FIRST_ARGUMENT),
                (_ANY_BIT, 0, 1, _CLONE_THREAD),
                (_RETURN, 0, 0, _ALLOW),
                (_RETURN, 0, 0, _REFUSE),
            ]
        elif name == "clone3":  # its flags are in memory; told that it does not exist, libc uses clone
            code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _NO_SUCH_CALL)]
        elif name in ("tgkill", "prlimit64"):  # to itself only; prlimit64 also says 0 for itself
            own = [own_pid] if name == "tgkill" else [own_pid, 0]
            body = [(_LOAD, 0, 0, _AT_FIRST_ARGUMENT)]
            for pid in own:
                body += [(_EQUAL, 0, 1, pid), (_RETURN, 0, 0, _ALLOW)]
            body.append((_RETURN, 0, 0, _REFUSE))
            code += [(_EQUAL, 0, len(body), number), *body]
        else:
            code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE)]
    return [*code, (_RETURN, 0, 0, _ALLOW)]


def install():
    """Install the filter for this process for good. Returns True when the kernel took it."""
    instructions = program(platform.machine(), os.getpid())
    if instructions is None:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    array = (_Instruction * len(instructions))(*[_Instruction(*item) for item in instructions])
    filter_ = _Program(len(instructions), array)
    none = ctypes.c_ulong(0)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), none, none, none) != 0:
        return False
    return libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_FILTER), ctypes.byref(filter_), none, none) == 0
