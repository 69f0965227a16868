"""The lab: a tap with our addresses at this end and a siw host at the other, MTU, recordings, and the programs on both sides.
Runs inside namespaces of its own (private.run)."""
import contextlib
import os
import subprocess

from .guest import MEMORY_FOLDER, Guest, GuestLost
from .process import HostProgram, poll_until

ADDRESS = "10.99.0.1"
ADDRESS6 = "fd99::1"
GUEST = 2


def command(*words):
    subprocess.run([str(word) for word in words], check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=20)


class Lab:
    def __init__(self, kernel, build, folder, offload=True):
        """`kernel`: a User Mode Linux with siw; `build`: where this project was built; `folder`: for logs and recordings."""
        self.kernel = kernel
        self.build = build
        self.folder = folder
        self.offload = offload
        self.mtu = 1500
        self.guest = None
        self.boots = 0
        self.panic_expected = False
        self.programs = []
        command("mount", "-t", "tmpfs", "memory", MEMORY_FOLDER)
        command("ip", "link", "set", "lo", "up")
        command("ip", "tuntap", "add", "tap0", "mode", "tap")
        command("ip", "addr", "add", f"{ADDRESS}/24", "dev", "tap0")
        command("ip", "link", "set", "tap0", "mtu", self.mtu, "up")
        command("ip", "-6", "addr", "add", f"{ADDRESS6}/64", "dev", "tap0", "nodad")

    # Programs.

    def ours(self, name):
        """A program of this project's build."""
        for place in ("tools", "tests/interop", "tests/interop/matrix"):
            path = os.path.join(self.build, place, name)
            if os.path.exists(path):
                return path
        raise FileNotFoundError(f"{name} is not built in {self.build}")

    def start(self, name, *arguments, env=None):
        """A program of ours on our side."""
        program = HostProgram([self.ours(name), *arguments], env)
        self.programs = [p for p in self.programs if not p.output.ended] + [program]
        return program

    def run(self, name, *arguments, limit=30):
        return self.start(name, *arguments).wait(limit)

    @contextlib.contextmanager
    def serving(self, name, *arguments, ip=4, port=0):
        """`NAME serve ARGUMENTS`; gives (program, port). Ends it with SIGTERM."""
        listen = f"{ADDRESS}:{port}" if ip == 4 else f"[{ADDRESS6}]:{port}"
        server = self.start(name, "serve", *arguments, "--listen", listen)
        try:
            if not server.output.wait(lambda o: "\n" in o.texts["out"], 10):
                raise RuntimeError(f"does not listen: {server.wait(0)}")
            yield server, int(server.output.texts["out"].split("\n")[0].rsplit(":", 1)[1])
        finally:
            server.stop()

    def host_address(self, ip):
        return ADDRESS if ip == 4 else ADDRESS6

    def siw_address(self, ip):
        return self.guest.address if ip == 4 else self.guest.address6

    def siw_target(self, ip, port):
        return f"{self.guest.address}:{port}" if ip == 4 else f"[{self.guest.address6}]:{port}"

    # The siw host.

    def boot(self):
        """A siw host that lives: the one there, or a new one."""
        if self.guest and self.guest.alive():
            return
        if self.guest:
            self.guest.kill()
            self.guest = None
        shim = os.path.join(self.build, "tests/interop/libinterop_xstate_shim.so")
        self.guest = Guest(self.kernel, self.folder, "tap0", GUEST, self.mtu, shim if os.path.exists(shim) else None,
                           offload=self.offload)
        self.boots += 1

    def reboot(self):
        if self.guest:
            self.guest.stop()
            self.guest = None
        self.boot()

    def expect_panic(self):
        """This cell may end the siw host: that does not speak against it."""
        self.panic_expected = True

    def set_mtu(self, mtu):
        """Boots anew when it is another one: the driver of the guest's interface allows no more than it booted with."""
        if mtu == self.mtu:
            return
        self.mtu = mtu
        command("ip", "link", "set", "tap0", "mtu", mtu)
        self.reboot()

    # Recordings.

    @contextlib.contextmanager
    def recording(self, name, snap=0, interface="tap0", match="tcp"):
        """Records the scenario into FOLDER/NAME.pcap and gives that path."""
        path = os.path.join(self.folder, name + ".pcap")
        # Not as another user: the folder is ours alone.
        recorder = HostProgram(["tcpdump", "-i", interface, "-s", snap, "-U", "-Z", "root", "--immediate-mode", "-n", "-w",
                                path, *match.split()])
        if not recorder.output.wait_text("listening on", 10):
            raise RuntimeError(f"cannot record: {recorder.wait(0)}")
        try:
            yield path
        finally:
            recorder.stop()

    def stop_programs(self):
        """Whatever a cell left running, on either side."""
        guests = list(self.guest.programs.values()) if self.guest and self.guest.alive() else []
        for program in self.programs + guests:
            with contextlib.suppress(OSError):
                program.kill()
                program.output.wait_end(5)
        self.programs = []

    def close(self):
        self.stop_programs()
        if self.guest:
            self.guest.stop()
            self.guest = None


__all__ = ["ADDRESS", "ADDRESS6", "GuestLost", "Lab", "poll_until"]
