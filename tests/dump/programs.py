"""iwarp-dump and tshark for the tests: run, with their output as lists."""
import collections
import json
import os
import shutil
import subprocess

DUMP = os.environ["IWARP_DUMP"]
CATALOG = os.environ["IWARP_DUMP_CATALOG"]
FIXTURES = os.environ["IWARP_FIXTURES"]
LIMIT = 60  # seconds


def run(*command, code=0, **options):
    done = subprocess.run(command, capture_output=True, timeout=LIMIT, check=False, **options)
    assert done.returncode == code, f"{command}: exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done


def dump(*arguments, **options):
    """Standard output as text."""
    return run(DUMP, *arguments, **options).stdout.decode()


def events(*arguments, **options):
    return [json.loads(line) for line in dump("--json", *arguments, **options).splitlines()]


def make_catalog(folder):
    """Names of the synthetic captures, with what is in each."""
    entries = {}
    for line in run(CATALOG, folder).stdout.decode().splitlines():
        name, *fields = line.split(" ", 1)[0], line
        entries[name] = fields
    return list(entries)


COLUMNS = [
    "frame.number", "iwarp_mpa.ulpdulength", "iwarp_ddp.tagged_flag", "iwarp_ddp.last_flag", "iwarp_ddp.stag",
    "iwarp_ddp.tagged_offset", "iwarp_ddp.qn", "iwarp_ddp.msn", "iwarp_ddp.mo", "iwarp_rdma.opcode", "iwarp_mpa.key.req",
    "iwarp_mpa.key.rep", "iwarp_mpa.rev", "iwarp_mpa.crc_check",
]
OPERATIONS = ["Write", "ReadReq", "ReadResp", "Send", "SendInv", "SendSE", "SendSEInv", "Terminate", "Immediate", "ImmSE",
              "AtomicReq", "AtomicResp"]


def have_tshark():
    return shutil.which("tshark") is not None


def tshark(path, *options):
    """What Wireshark's dissectors see: start-up frames and FPDUs, each a tuple, by frame."""
    command = ["tshark", "-n", "-r", path, "--disable-protocol", "rpcordma", "-o", "tcp.reassemble_out_of_order:TRUE",
               "-Y", "iwarp_mpa", "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,"]
    command += options
    for column in COLUMNS[:-1]:
        command += ["-e", column]
    seen = collections.defaultdict(list)
    for line in run(*command).stdout.decode().splitlines():
        cells = dict(zip(COLUMNS, line.split("\t")))
        values = {name: iter(text.split(",")) if text else iter(()) for name, text in cells.items()}
        frame = int(cells["frame.number"])

        def take(name):
            return int(next(values[name], "-1"), 0)

        for key in ("req", "rep"):
            if cells["iwarp_mpa.key." + key]:
                seen[frame].append(("mpa", {"req": "request", "rep": "reply"}[key], take("iwarp_mpa.rev")))
        for length in values["iwarp_mpa.ulpdulength"]:
            tagged = take("iwarp_ddp.tagged_flag")
            if tagged < 0:
                seen[frame].append(("fpdu", int(length)))
                continue
            last = take("iwarp_ddp.last_flag")
            if tagged:
                header = (take("iwarp_ddp.stag"), take("iwarp_ddp.tagged_offset"))
            else:
                header = (take("iwarp_ddp.qn"), take("iwarp_ddp.msn"), take("iwarp_ddp.mo"))
            opcode = take("iwarp_rdma.opcode")
            name = OPERATIONS[opcode] if 0 <= opcode < len(OPERATIONS) else f"op{opcode}"
            seen[frame].append(("fpdu", int(length), name, bool(tagged), bool(last), *header))
    return dict(seen)


def ours(path):
    seen = collections.defaultdict(list)
    for e in events(path):
        if e["type"] == "mpa":
            seen[e["frame"]].append(("mpa", e["role"], e["rev"]))
        elif e["type"] == "fpdu":
            if "tagged" not in e:
                seen[e["frame"]].append(("fpdu", e["ulpdu"]))
                continue
            header = (e["stag"], e["to"]) if e["tagged"] else (e["qn"], e["msn"], e["mo"])
            seen[e["frame"]].append(("fpdu", e["ulpdu"], e["op"], e["tagged"], e["last"], *header))
    return dict(seen)
