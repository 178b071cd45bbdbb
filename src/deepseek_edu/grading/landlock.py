"""Landlock for the grader's child process (Linux 5.13 and later), through ctypes.

After `restrict` the process may read the given paths, write below one folder, and nothing else on the file system;
with newer kernels it may also not use TCP (ABI 4), nor reach outside processes by signals or abstract sockets (ABI
6).
"""

import contextlib
import ctypes
import os
import stat

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every machine
_READ = 1 << 0 | 1 << 2 | 1 << 3  # execute, read a file, read a directory
_FILE_ONLY = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14
_WRITE_DEVICE = 1 << 1 | 1 << 2
_ALL_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}
_IOCTL = 1 << 15
_PATH_BENEATH = 1


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("access", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def abi():
    """The version of Landlock this kernel offers; 0 for none."""
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(ctypes.c_long(_CREATE), None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    return max(0, version)


def restrict(readable, excluded, writable, devices=("/dev/null", "/dev/zero", "/dev/urandom")):
    """Restrict this process for good.

    Args:
        readable: files and folders that stay readable, with all below them.
        excluded: folders that stay closed although they lie below a readable one.
        writable: one folder in which everything is allowed.
        devices: files that may be read and written.

    Returns:
        The ABI version in force, 0 when the kernel has no Landlock or refused.
    """
    version = abi()
    if version < 1:
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    files = _ALL_BY_ABI.get(version, _ALL_BY_ABI[3]) | (_IOCTL if version >= 5 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = _Ruleset(files, 3, 3)
    ruleset = libc.syscall(ctypes.c_long(_CREATE), ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    if ruleset < 0:
        return 0
    try:
        for path in _without(readable, excluded):
            _allow(libc, ruleset, path, _READ & files)
        for path in devices:
            _allow(libc, ruleset, path, _WRITE_DEVICE & files)
        _allow(libc, ruleset, writable, files)
        if libc.prctl(38, ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
            return 0
        done = libc.syscall(ctypes.c_long(_RESTRICT), ctypes.c_int(ruleset), ctypes.c_uint32(0))
        return version if done == 0 else 0
    finally:
        os.close(ruleset)


def _allow(libc, ruleset, path, access):
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            access &= _FILE_ONLY
        rule = _PathBeneath(access, handle)
        libc.syscall(
            ctypes.c_long(_ADD),
            ctypes.c_int(ruleset),
            ctypes.c_int(_PATH_BENEATH),
            ctypes.byref(rule),
            ctypes.c_uint32(0),
        )
    finally:
        os.close(handle)


def _without(readable, excluded):
    """The readable paths, opened up where an excluded folder lies below one: rules of Landlock cannot take away."""
    closed = {os.path.realpath(path) for path in excluded}
    todo = [os.path.realpath(path) for path in readable]
    while todo:
        path = todo.pop()
        if not any(folder.startswith(path.rstrip(os.sep) + os.sep) for folder in closed):
            yield path
            continue
        with contextlib.suppress(OSError):
            below = (os.path.join(path, name) for name in os.listdir(path))
            todo.extend(item for item in below if item not in closed and not os.path.islink(item))
