"""iwarp-copy: sizes, names, and what is left behind when something goes wrong."""
import filecmp
import hashlib
import os
import re
import resource
import socket
import subprocess
import unittest

from programs import COPY, LIMIT, ProgramTest, Proxy

MIB = 1 << 20


class Copy(ProgramTest):
    def setUp(self):
        super().setUp()
        self.served = os.path.join(self.folder, "served")
        self.local = os.path.join(self.folder, "local")
        os.mkdir(self.served)
        os.mkdir(self.local)
        self.server = self.serve(COPY, self.served)

    def make(self, name, size, sparse=False, folder=None):
        path = os.path.join(folder or self.local, name)
        with open(path, "wb") as file:
            if sparse:
                file.truncate(size)
                file.seek(size // 2)
                file.write(b"in the middle of nothing")
                file.truncate(size)
            else:
                file.write(os.urandom(size))
        return path

    def put(self, path, name="", address=None, code=0):
        where = (address or self.server.address) + ("/" + name if name else "")
        return self.run_program(COPY, "put", path, where, code=code)

    def get(self, name, path, address=None, code=0):
        return self.run_program(COPY, "get", f"{address or self.server.address}/{name}", path, code=code)

    def hidden(self, folder):
        """Files in the making that somebody left behind."""
        return [name for name in os.listdir(folder) if name.startswith(".")]

    def assert_nothing_left(self):
        self.assertEqual(self.hidden(self.served), [])
        self.assertEqual(self.hidden(self.local), [])

    def check_both_ways(self, path):
        name = os.path.basename(path)
        size = os.path.getsize(path)
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            while piece := file.read(MIB):
                digest.update(piece)
        for text, copied in [(self.put(path), os.path.join(self.served, name)),
                             (self.get(name, path + ".back"), path + ".back")]:
            self.assertRegex(text, rf"^copied {size} octets in [0-9.]+ s \([0-9.]+ MB/s\), sha256 [0-9a-f]{{64}}\n$")
            self.assertEqual(re.search(r"sha256 (\w+)", text).group(1), digest.hexdigest())
            self.assertTrue(filecmp.cmp(path, copied, shallow=False))
            os.unlink(copied)
        self.assert_nothing_left()

    def test_sizes(self):
        for size in [0, 1, 4095, 4096, MIB, 5 * MIB + 3, 64 * MIB, 64 * MIB + 1]:
            with self.subTest(size=size):
                self.check_both_ways(self.make(f"of{size}", size))

    def test_large_sparse_file(self):
        self.check_both_ways(self.make("sparse", 300 * MIB, sparse=True))

    def test_settings(self):
        path = self.make("file", 3 * MIB + 1)
        for options in [["--crc", "off"], ["--markers", "on"], ["--mpa-rev", "1"]]:
            self.run_program(COPY, "put", path, self.server.address, *options)
            self.assertTrue(filecmp.cmp(path, os.path.join(self.served, "file"), shallow=False))
            self.run_program(COPY, "get", self.server.address + "/file", os.path.join(self.local, "back"), *options)
            self.assertTrue(filecmp.cmp(path, os.path.join(self.local, "back"), shallow=False))

    def test_places(self):
        path = self.make("file", 1000)
        os.mkdir(os.path.join(self.served, "sub"))
        self.put(path, "sub/other")
        self.assertTrue(filecmp.cmp(path, os.path.join(self.served, "sub", "other"), shallow=False))
        # Into a folder, and into the current one, under the name's last component.
        self.get("sub/other", self.folder)
        self.assertTrue(filecmp.cmp(path, os.path.join(self.folder, "other"), shallow=False))
        self.run_program(COPY, "get", self.server.address + "/sub/other", cwd=self.local)
        self.assertTrue(filecmp.cmp(path, os.path.join(self.local, "other"), shallow=False))
        # In place of what was there.
        changed = self.make("changed", 2000)
        self.put(changed, "sub/other")
        self.assertTrue(filecmp.cmp(changed, os.path.join(self.served, "sub", "other"), shallow=False))

    def test_names_that_lead_out(self):
        secret = self.make("secret", 100, folder=self.folder)
        path = self.make("file", 100)
        inside = self.make("inside", 100, folder=self.served)
        os.mkdir(os.path.join(self.served, "sub"))
        os.symlink(secret, os.path.join(self.served, "link"))
        os.symlink("inside", os.path.join(self.served, "friendly"))
        os.symlink(self.folder, os.path.join(self.served, "way"))
        os.mkfifo(os.path.join(self.served, "pipe"))
        before = sorted(os.listdir(self.served))
        for name in ["../secret", secret, "sub/../../secret", "./inside", "sub//x", "sub/", "..", ".", "link", "friendly",
                     "way/secret", "pipe", "sub", ".iwarp-copy-0", "sub/.iwarp-copy-0", "inside/x", "a\nb\x1b[31m"]:
            with self.subTest(name=name):
                out = os.path.join(self.local, "out")
                self.assertRegex(self.get(name, out, code=1), "not a name below|not a regular file|no such file")
                self.assertFalse(os.path.exists(out))
                if name != "a\nb\x1b[31m":
                    self.put(path, name, code=1)
        self.assertEqual(sorted(os.listdir(self.served)), before)
        self.assertEqual(os.listdir(os.path.join(self.served, "sub")), [])
        self.assertEqual(os.path.getsize(secret), 100)
        self.assertEqual(os.path.getsize(inside), 100)
        self.assertNotIn("\x1b", self.server.stderr())
        self.assert_nothing_left()

    def test_local_problems(self):
        self.assertIn("no such file", self.put(os.path.join(self.local, "none"), code=1))
        self.assertIn("not a regular file", self.put(self.local, code=1))
        self.assertIn("not a regular file", self.put("/dev/null", code=1))
        self.make("file", 100, folder=self.served)
        self.assertIn("no such file", self.get("file", os.path.join(self.local, "no", "folder"), code=1))
        self.assertIn("no such file", self.get("none", os.path.join(self.local, "none"), code=1))
        self.assertEqual(os.listdir(self.local), [])

    def test_served_folder_problems(self):
        self.assertIn("no such file", self.run_program(COPY, "serve", os.path.join(self.folder, "none"), code=1))
        path = self.make("file", 100)
        self.assertIn("not a directory", self.run_program(COPY, "serve", path, code=1))
        closed = self.serve(COPY, self.served, "--read-only")
        self.assertIn("takes no files", self.put(path, address=closed.address, code=1))

    def test_permission(self):
        if os.geteuid() == 0:
            self.skipTest("root may read and write everything")
        path = self.make("file", 100, folder=self.served)
        os.chmod(path, 0)
        self.assertIn("permission denied", self.get("file", os.path.join(self.local, "out"), code=1))
        os.chmod(self.served, 0o500)
        self.addCleanup(os.chmod, self.served, 0o700)
        self.assertIn("permission denied", self.put(self.make("other", 100), code=1))

    def test_no_room(self):
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, MIB))

        server = self.serve(COPY, self.served, preexec_fn=small_files)
        self.assertIn("no space", self.put(self.make("big", 2 * MIB), address=server.address, code=1))
        self.assertEqual(os.listdir(self.served), [])
        self.put(self.make("small", MIB), address=server.address)

    def interrupted_copy(self, command, limit, at_limit, from_server):
        """Runs a copy through a proxy; `at_limit(client)` happens in the middle of it. Returns the client."""
        ready = {}

        def middle(chunk):
            return at_limit(ready["client"], chunk)

        with Proxy(self.server.port, limit, middle, from_server) as proxy:
            # The limit lies far behind what is sent before Popen() returns.
            ready["client"] = client = subprocess.Popen(command(proxy.address), stdout=subprocess.PIPE,
                                                        stderr=subprocess.PIPE, text=True)
            text, errors = client.communicate(timeout=LIMIT)
            self.assertTrue(proxy.reached.is_set())
        return client.returncode, text, errors

    def test_client_killed_in_the_middle(self):
        path = self.make("big", 300 * MIB, sparse=True)

        def kill(client, chunk):
            client.kill()
            return chunk

        self.interrupted_copy(lambda to: [COPY, "put", path, to], 20 * MIB, kill, from_server=False)
        self.make("big", 300 * MIB, sparse=True, folder=self.served)
        self.interrupted_copy(lambda to: [COPY, "get", to + "/big", os.path.join(self.local, "got")], 20 * MIB, kill,
                              from_server=True)
        # Neither a half file nor a trace, and the next client is served.
        self.assertFalse(os.path.exists(os.path.join(self.local, "got")))
        self.put(self.make("next", 1000))
        self.server.stop()
        self.assertEqual(sorted(os.listdir(self.served)), ["big", "next"])
        self.assertIn("127.0.0.1:", self.server.stderr())
        self.assert_nothing_left()

    def test_server_killed_in_the_middle(self):
        path = self.make("big", 300 * MIB, sparse=True)

        def kill(_, chunk):
            self.server.kill()
            self.server.process.wait()
            return chunk

        code, text, errors = self.interrupted_copy(lambda to: [COPY, "put", path, to], 20 * MIB, kill, from_server=False)
        self.assertEqual((code, text), (1, ""))
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertNotIn("big", os.listdir(self.served))

    def test_server_killed_during_a_get(self):
        self.make("big", 300 * MIB, sparse=True, folder=self.served)

        def kill(_, chunk):
            self.server.kill()
            self.server.process.wait()
            return chunk

        code, text, errors = self.interrupted_copy(
            lambda to: [COPY, "get", to + "/big", os.path.join(self.local, "got")], 20 * MIB, kill, from_server=True)
        self.assertEqual((code, text), (1, ""))
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertEqual(os.listdir(self.local), [])

    def test_damaged_on_the_way(self):
        path = self.make("file", 8 * MIB)

        def damage(_, chunk):
            return chunk[:-1] + bytes([chunk[-1] ^ 1])

        # With CRC the stack sees it ...
        code, _, errors = self.interrupted_copy(lambda to: [COPY, "put", path, to], 4 * MIB, damage, from_server=False)
        self.assertEqual(code, 1)
        self.assertIn("CRC", errors)
        self.assertEqual(os.listdir(self.served), [])
        # ... and without it, unless it was a header that broke, the checksum over the file.
        code, _, errors = self.interrupted_copy(lambda to: [COPY, "put", path, to, "--crc", "off"], 4 * MIB, damage,
                                                from_server=False)
        self.assertEqual(code, 1)
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertEqual(os.listdir(self.served), [])

    def test_file_shortened_in_the_middle(self):
        for crc in ["on", "off"]:
            served = self.make("big", 300 * MIB, sparse=True, folder=self.served)
            local = self.make("local", 300 * MIB, sparse=True)

            def shorten(path):
                def at_limit(_, chunk):
                    os.truncate(path, MIB)
                    return chunk
                return at_limit

            with self.subTest("get", crc=crc):
                code, _, errors = self.interrupted_copy(
                    lambda to: [COPY, "get", to + "/big", os.path.join(self.local, "got"), "--crc", crc], 20 * MIB,
                    shorten(served), from_server=True)
                self.assertEqual(code, 1)
                self.assertEqual(errors.count("\n"), 1, errors)
                self.assertFalse(os.path.exists(os.path.join(self.local, "got")))
            with self.subTest("put", crc=crc):
                code, _, errors = self.interrupted_copy(
                    lambda to: [COPY, "put", local, to + "/new", "--crc", crc], 20 * MIB, shorten(local),
                    from_server=False)
                self.assertEqual(code, 1)
                self.assertIn("local was shortened by somebody else", errors)
                self.assertEqual(errors.count("\n"), 1, errors)
                self.assertFalse(os.path.exists(os.path.join(self.served, "new")))
        # The server has survived all four, and says why two failed.
        self.put(self.make("next", 1000))
        self.server.stop()
        self.assertEqual(self.server.stderr().count("was shortened by somebody else"), 2, self.server.stderr())

    def test_many_clients_at_once(self):
        paths = [self.make(f"file{i}", 3 * MIB + i) for i in range(6)]
        clients = [subprocess.Popen([COPY, "put", path, self.server.address], stdout=subprocess.DEVNULL)
                   for path in paths]
        for client in clients:
            self.assertEqual(client.wait(timeout=LIMIT), 0)
        for path in paths:
            self.assertTrue(filecmp.cmp(path, os.path.join(self.served, os.path.basename(path)), shallow=False))

    def test_strangers_disturb_nobody(self):
        with socket.create_connection(("127.0.0.1", self.server.port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            self.check_both_ways(self.make("file", 1000))


if __name__ == "__main__":
    unittest.main()
