"""The drop-in's symbols beside those of the installed libibverbs and librdmacm, and the programs that misuse its calls."""
import os
import subprocess

LIBRARIES = ["/usr/lib/x86_64-linux-gnu/libibverbs.so.1", "/usr/lib/x86_64-linux-gnu/librdmacm.so.1"]
# Left to rdma-core: they know no device, or run on the calls that we have.
LEFT = {
    # Numbers, names and structures.
    "ibv_copy_ah_attr_from_kern", "ibv_copy_path_rec_from_kern", "ibv_copy_path_rec_to_kern", "ibv_copy_qp_attr_from_kern",
    "ibv_event_type_str", "ibv_node_type_str", "ibv_port_state_str", "ibv_wc_status_str", "ibv_rate_to_mbps", "ibv_rate_to_mult",
    "mbps_to_ibv_rate", "mult_to_ibv_rate", "ibv_get_sysfs_path", "ibv_read_sysfs_file", "rdma_event_str", "rdma_get_dst_port",
    "rdma_get_src_port",
    # rsockets.
    "raccept", "rbind", "rclose", "rconnect", "rfcntl", "rgetpeername", "rgetsockname", "rgetsockopt", "riomap", "riounmap", "riowrite",
    "rlisten", "rpoll", "rread", "rreadv", "rrecv", "rrecvfrom", "rrecvmsg", "rselect", "rsend", "rsendmsg", "rsendto", "rsetsockopt",
    "rshutdown", "rsocket", "rwrite", "rwritev",
}


def exported(path):
    """name: its default version."""
    done = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", path], capture_output=True, text=True, check=True, timeout=30)
    found = {}
    for line in done.stdout.splitlines():
        symbol = line.split()[-1]
        if "@@" in symbol:
            name, version = symbol.split("@@")
            if name != version:
                found[name] = version
    return found


def compare(ours):
    """Every public call is ours under the version it has there, or left on purpose; and we have no other."""
    theirs = {}
    for path in LIBRARIES:
        theirs.update({name: version for name, version in exported(path).items()})
    public = {name: version for name, version in theirs.items() if "PRIVATE" not in version}
    missing = sorted(name for name in public if name not in ours and name not in LEFT)
    if missing:
        return "not there: " + ", ".join(missing)
    other = sorted(f"{name}@{version}" for name, version in ours.items() if theirs.get(name) != version)
    if other:
        return "of another version, or unknown to rdma-core: " + ", ".join(other)
    both = sorted(name for name in LEFT if name in ours or name not in public)
    return "left, but not to be: " + ", ".join(both) if both else ""


def misuse(build, program):
    done = subprocess.run([os.path.join(build, "tools", "iwarp-run"), "--addresses", "lo,wire0", "--", os.path.join(build, "tests", "dropin", *program)],
                          capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL)
    return "" if done.returncode == 0 else f"exit code {done.returncode}: {(done.stdout + done.stderr).strip()[-300:]}"


def checks(build):
    library = os.path.join(build, "verbs", "compat", "libiwarp-compat.so")
    return {"symbols": lambda: compare(exported(library)), "misuse, one process": lambda: misuse(build, ["dropin_calls"]),
            "misuse, a process for each case": lambda: misuse(build, ["misuse", "dropin_misuse_cases"])}
