"""A system-call filter for the grader's child process (Linux on x86-64 and ARM64), through ctypes.

It refuses, with "operation not permitted", what no exercise needs: new processes, sockets, signals to other processes,
tracing, changing other processes' limits or priorities, namespaces and mounts. Threads stay allowed. The calls are numbers of
the kernel's tables for each machine.
"""

import ctypes
import os
import platform

_NAMES = ("clone clone3 socket kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal pidfd_open execve "
          "execveat ptrace process_vm_readv process_vm_writev prlimit64 setpriority sched_setaffinity sched_setscheduler "
          "sched_setparam sched_setattr ioprio_set unshare setns mount chroot bpf perf_event_open add_key request_key "
          "keyctl userfaultfd io_uring_setup shmget").split()
_X86_64 = (56, 435, 41, 62, 200, 234, 129, 297, 424, 434, 59, 322, 101, 310, 311, 302, 141, 203, 144, 142, 314, 251, 272,
           308, 165, 161, 321, 298, 248, 249, 250, 323, 425, 29)
_ARM64 = (220, 435, 198, 129, 130, 131, 138, 240, 424, 434, 221, 281, 117, 270, 271, 261, 140, 122, 119, 118, 274, 30, 97,
          268, 40, 51, 280, 241, 217, 218, 219, 282, 425, 194)
_MACHINES = {
    "x86_64": (0xC000003E, dict(zip(_NAMES, _X86_64)) | {"fork": 57, "vfork": 58}),
    "aarch64": (0xC00000B7, dict(zip(_NAMES, _ARM64))),
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
            code += [(_EQUAL, 0, 4, number), (_LOAD, 0, 0, _AT_FIRST_ARGUMENT), (_ANY_BIT, 0, 1, _CLONE_THREAD),
                     (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
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
