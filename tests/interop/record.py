#!/usr/bin/env python3
"""Records traffic of this stack with siw, and of siw with siw, for pcap_fixtures/: one NAME.pcap each. The notes are written by
hand; pcap_fixtures/README.md says what else a new fixture needs."""
import argparse
import os
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

import probe  # noqa: E402
from cells import FROM_SIW, TO_SIW, Cell  # noqa: E402
from lab import private  # noqa: E402
from lab.lab import Lab, poll_until  # noqa: E402
from run import what_is_missing  # noqa: E402
from scenarios.ping import PORT  # noqa: E402
from scenarios.startup import CONNECTS, LISTENS  # noqa: E402


def ping(lab, crc):
    server = lab.guest.start("rping", "-s", "-a", lab.siw_address(4), "-p", PORT, "-S", 3000, "-C", 2)
    lab.guest.wait_listening(PORT)
    done = lab.run("iwarp-ping", "connect", lab.siw_target(4, PORT), "-C", 2, "-S", 3000, "--crc", crc)
    assert done.code == 0 and server.wait(10).code == 0, done
    with lab.serving("iwarp-ping", "--crc", crc, port=PORT):
        done = lab.guest.run("rping", "-c", "-a", lab.host_address(4), "-p", PORT, "-C", 2, "-S", 3000)
        assert done.code == 0, done


def pair(lab, direction, *arguments, crc="on", succeeds=True, **options):
    one = probe.Pair(lab, Cell("record", "", direction, crc=crc), *arguments, **options)
    if succeeds:
        one.require_success()
    one.finish()


def ping_crc(lab):
    ping(lab, "on")


def ping_plain(lab):
    ping(lab, "off")


def operations(lab):
    pair(lab, TO_SIW, [], [],
         ["offer", "take", "write:5000", "send:1", "solicited:40", "reads:2:5000", "invalidate:33", "send:0", "recv:8", "disconnect"],
         ["take", "offer", "recv:1", "check:5000", "recv:40", "recv:33", "recv:0", "send:8", "hold"])


def terminate(lab):
    # The one whose Write is refused ends by the other's Terminate.
    pair(lab, TO_SIW, [], [], ["offer", "take", "bad:100", "hold"], ["take", "offer", "hold"], succeeds=False)
    pair(lab, FROM_SIW, [], [], ["offer", "take", "bad:100"], ["take", "offer", "hold"], succeeds=False)


def reject(lab):
    for direction in (TO_SIW, FROM_SIW):
        pair(lab, direction, ["--data", b"may I?".hex()], ["--answer", "reject", "--data", b"no".hex()], succeeds=False)


def revision_1(lab):
    pair(lab, TO_SIW, ["--data", b"old".hex()], [], CONNECTS, LISTENS, ours=["--revision", "1"])


RECORDINGS = {"ours-siw-ping": ping_plain, "ours-siw-ping-crc": ping_crc, "ours-siw-operations": operations,
              "ours-siw-terminate": terminate, "ours-siw-reject": reject, "ours-siw-revision-1": revision_1}


def record(options, folder):
    # No offload: frames as they would be on a wire.
    lab = Lab(os.path.abspath(options.kernel), os.path.abspath(options.build), folder, offload=False)
    try:
        for name, scenario in RECORDINGS.items():
            if options.only in name:
                lab.reboot()
                # The agent's own connection goes to a port of ours that the kernel chose, above these.
                with lab.recording(name, match="tcp portrange 7000-7999") as path:
                    scenario(lab)
                    poll_until(lambda: False, 1.2, 0.4)  # FINs that are still on their way  lint: allow, nothing tells
                shutil.copy(path, options.folder)
        if options.only in "siw-nvme":
            lab.reboot()
            done = lab.guest.run(os.path.join(HERE, "guest", "nvme.sh"), "/run/siw-nvme.pcap", limit=40)
            print(done)
            with open(os.path.join(options.folder, "siw-nvme.pcap"), "wb") as file:
                file.write(lab.guest.read("/run/siw-nvme.pcap"))
    finally:
        lab.close()
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="build folder of this project")
    parser.add_argument("--kernel", default=os.environ.get("IWARP_SIW_KERNEL"), help="default: IWARP_SIW_KERNEL")
    parser.add_argument("--only", default="", help="recordings whose name has this in it")
    parser.add_argument("folder", help="where the recordings go")
    options = parser.parse_args()
    missing = what_is_missing(options.kernel)
    if missing:
        sys.exit(missing)
    os.makedirs(options.folder, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="iwarp-interop-") as folder:
        return private.run(lambda: record(options, folder))


if __name__ == "__main__":
    sys.exit(main())
