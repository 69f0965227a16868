"""Namespaces of the lab's own: network, processes, mounts. They end with the lab's first process, however that ends, so that
no interface, process or mount of the lab outlives it, and two labs at once do not see each other."""
import ctypes
import os
import signal
import time

CLONE_NEWNS = 0x00020000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_REC_PRIVATE = 0x4000 | 0x40000
PR_SET_PDEATHSIG = 1
GRACE = 15  # seconds between a polite and a forced end

libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def run(body):
    """Runs body() as the first process of new namespaces; returns its exit code. SIGINT and SIGTERM to this process become
    KeyboardInterrupt there; what has not ended GRACE seconds later is killed."""
    check(libc.unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET), "unshare")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
            check(libc.mount(b"none", b"/", None, MS_REC_PRIVATE, None), "making mounts private")
            check(libc.mount(b"proc", b"/proc", b"proc", 0, None), "mounting /proc")
            signal.signal(signal.SIGTERM, interrupt)
            signal.signal(signal.SIGINT, interrupt)
            code = body()
        except KeyboardInterrupt:
            code = 130
        finally:
            # Not sys.exit(): the parent's cleanups are not ours. As the first process of its namespace this one takes all
            # others with it.
            flush()
            os._exit(code)
    return wait_for(child)


def interrupt(*_):
    # Once: the cleanups that follow must not be interrupted by a second Ctrl-C; the parent's patience bounds them.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def flush():
    import sys
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass


def wait_for(child):
    asked = []

    def ask(*_):
        if not asked:
            asked.append(time.monotonic())
            os.kill(child, signal.SIGTERM)
            signal.alarm(GRACE)

    signal.signal(signal.SIGINT, ask)
    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    _, status = os.waitpid(child, 0)
    signal.alarm(0)
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
