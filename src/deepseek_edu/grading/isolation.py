"""What the grader's child process gives up before it sees a submission.

Each step is tried; what the machine refuses is reported as missing instead of being assumed. Linux offers all of it
(kernel 5.13 and later, and 6.12 for signals); on macOS only the resource limits hold.
"""

import contextlib
import ctypes
import os
import resource
import sys

MEBIBYTE = 2**20
_NEW_USER, _NEW_NET, _NEW_IPC, _NEW_MOUNTS = 0x10000000, 0x40000000, 0x08000000, 0x00020000
_NO_SUID, _NO_DEVICES = 2, 4


def apply(settings, landlock, seccomp):
    """Give up everything the submission must not have.

    Args:
        settings: {"work": folder for the submission's files, "memory_mb", "cpu_seconds", "readable", "excluded"}.
        landlock, seccomp: the modules of these names (the child loads them by path).

    Returns:
        What holds now: name to text, or to None for a protection this machine does not offer.
    """
    held = dict.fromkeys(("time", "memory", "files", "network", "processes", "signals"))
    linux = sys.platform == "linux"
    space, private_disk = _namespaces(settings["work"]) if linux else ("", False)
    os.chdir(settings["work"])
    held["time"] = "CPU limit" if _limit("RLIMIT_CPU", settings["cpu_seconds"]) else None
    size = settings["memory_mb"] * MEBIBYTE
    data = linux and _limit("RLIMIT_DATA", size + 64 * MEBIBYTE)
    held["memory"] = "limit" if data and _limit("RLIMIT_AS", size + 2048 * MEBIBYTE) else None
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_FSIZE", 4 * MEBIBYTE)
    _limit("RLIMIT_NOFILE", 64)
    version = landlock.restrict(settings["readable"], settings["excluded"], settings["work"]) if linux else 0
    if version:
        held["files"] = f"Landlock {version}" + (", 16 MB private disk" if private_disk else "")
    filtered = linux and seccomp.install()
    if not filtered and _limit("RLIMIT_NPROC", 0) and os.geteuid() != 0:
        held["processes"] = "limit"
    network = [space, "Landlock (TCP)" if version >= 4 else "", "system-call filter" if filtered else ""]
    held["network"] = " + ".join(filter(None, network)) or None
    if filtered:
        held["processes"] = "system-call filter"
        held["signals"] = "system-call filter" + (" + Landlock" if version >= 6 else "")
    return held


def _limit(name, value):
    """Lower a resource limit for good; False where this system does not have it."""
    kind = getattr(resource, name, None)
    if kind is None:
        return False
    hard = resource.getrlimit(kind)[1]
    value = int(value if hard == resource.RLIM_INFINITY else min(value, hard))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (value, value))
        return True
    return False


def _namespaces(work):
    """Enter a namespace of its own with no network device and a small private disk over `work`.

    Returns:
        ("network namespace", True) for all of it; ("", False) where the machine does not allow it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    private_disk = False
    if libc.unshare(ctypes.c_int(_NEW_USER | _NEW_NET | _NEW_IPC | _NEW_MOUNTS)) != 0:
        if libc.unshare(ctypes.c_int(_NEW_USER | _NEW_NET | _NEW_IPC)) != 0:
            return "", False
    else:
        with contextlib.suppress(OSError):
            _write("/proc/self/setgroups", "deny")
            _write("/proc/self/uid_map", f"{user} {user} 1")
            _write("/proc/self/gid_map", f"{group} {group} 1")
            options = b"size=16m,nr_inodes=1024,mode=700"
            mounted = libc.mount(
                b"grading", os.fsencode(work), b"tmpfs", ctypes.c_ulong(_NO_SUID | _NO_DEVICES), options
            )
            private_disk = mounted == 0
    _drop_capabilities(libc)
    return "network namespace", private_disk


def _write(path, text):
    with open(path, "w") as file:
        file.write(text)


def _drop_capabilities(libc):
    """Entering a namespace grants its capabilities; give them back."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    libc.capset(header, (ctypes.c_uint32 * 6)())
