"""iwarp-dump --html: the page in Chromium, with ten messages and with a hundred thousand. Screenshots stay in the folder
IWARP_SCREENSHOTS names, for people to look at."""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

from programs import DUMP, FIXTURES, LIMIT, dump, events, make_catalog, run

PING = os.environ["IWARP_PING"]
CHROMIUM = shutil.which("chromium")
SCREENSHOTS = os.environ.get("IWARP_SCREENSHOTS")
# The colours of ladder.js on white.
COLOUR = {"Send": (0x1F, 0x63, 0xC4), "Write": (0x1B, 0x8A, 0x4B), "ReadReq": (0xC4, 0x6A, 0x00), "ReadResp": (0x94, 0x70, 0x0A),
          "Problem": (0xC2, 0x18, 0x2B)}


def chromium(*arguments):
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
             "--blink-settings=preferredColorScheme=1", "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}", *arguments],
            capture_output=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def dom(path, view=""):
    """The page after its scripts ran, and what they left on its root element."""
    text = chromium("--dump-dom", f"file://{path}{view}")
    root = re.search(r"<html[^>]*>", text)[0]
    return text, {name: value for name, value in re.findall(r'data-([a-z-]+)="([^"]*)"', root)}


def pixels(path):
    """Rows of (red, green, blue) of a PNG as Chromium writes it: 8 bits, not interlaced."""
    with open(path, "rb") as file:
        data = file.read()
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack_from(">IIBB", data, at + 8)
        elif kind == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += size + 12
    assert depth == 8 and colour in (2, 6)
    step = 3 if colour == 2 else 4
    raw, before, rows = zlib.decompress(packed), bytearray(width * step), []
    for y in range(height):
        begin = y * (width * step + 1)
        how, line = raw[begin], bytearray(raw[begin + 1:begin + 1 + width * step])
        if how == 1:
            for i in range(step, len(line)):
                line[i] = line[i] + line[i - step] & 255
        elif how == 2:
            line = bytearray(a + b & 255 for a, b in zip(line, before))
        elif how == 3:
            for i, up in enumerate(before):
                line[i] = line[i] + ((line[i - step] if i >= step else 0) + up >> 1) & 255
        elif how == 4:
            for i, up in enumerate(before):
                left, corner = (line[i - step], before[i - step]) if i >= step else (0, 0)
                a, b, c = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
                line[i] = line[i] + (left if a <= b and a <= c else up if b <= c else corner) & 255
        before = line
        rows.append([tuple(line[i:i + 3]) for i in range(0, len(line), step)])
    return rows


def record(path, pings):
    """Real traffic of this stack: 7 messages a ping."""
    server = subprocess.Popen([PING, "serve", "--listen", "127.0.0.1:0", "-C", "1"], stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().split()[-1]
        run(PING, "connect", address, "-C", str(pings), env=dict(os.environ, IWARP_PCAP=path))
        server.wait(timeout=LIMIT)
    finally:
        server.kill()
        server.stdout.close()


class Page(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def page(self, capture, *options):
        path = os.path.join(self.folder, "page.html")
        self.summary = dump("--html", path, *options, capture)
        return path

    def screenshot(self, path, name, view="", size=(1000, 700)):
        image = os.path.join(SCREENSHOTS or self.folder, name + ".png")
        os.makedirs(os.path.dirname(image), exist_ok=True)
        chromium(f"--window-size={size[0]},{size[1]}", "--virtual-time-budget=10000", f"--screenshot={image}", f"file://{path}{view}")
        counts = {}
        for row in pixels(image):
            for colour in row:
                counts[colour] = counts.get(colour, 0) + 1
        return counts

    def opened(self, path, view=""):
        text, state = dom(path, view)
        self.assertEqual(state.get("ready"), "yes", state)
        self.assertNotIn("error", state)
        shown = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.S)
        wrong = re.search(r".{0,60}(NaN|undefined|\[object).{0,20}", shown)
        self.assertIsNone(wrong, wrong)
        return shown, state


class Small(Page):
    def test_ten_messages_are_arrows_in_the_colours_of_their_operations(self):
        capture = os.path.join(self.folder, "ten.pcap")
        record(capture, 1)
        expected = events(capture)
        messages = [e for e in expected if e["type"] == "message"]
        self.assertIn(len(messages), range(5, 12))
        path = self.page(capture)
        _, state = self.opened(path)
        self.assertEqual(int(state["rows"]), len(messages) + 2)  # and the start-up frames
        self.assertEqual(int(state["drawn"]), len(messages) + 2)
        self.assertEqual((state["pairs"], state["problems"]), ("1", "0"))
        counts = self.screenshot(path, "ten")
        for operation in ("Send", "Write", "ReadReq", "ReadResp"):
            self.assertGreater(counts.get(COLOUR[operation], 0), 60, operation)

    def test_the_numbers_are_those_of_the_lines(self):
        capture = os.path.join(FIXTURES, "siw-rping.pcap")
        path = self.page(capture)
        self.assertEqual(self.summary, dump(capture).splitlines()[-1] + "\n")
        text, state = self.opened(path)
        summary = events(capture)[-1]
        for number, word in ((summary["streams"], "iWARP connections"), (summary["messages"], "messages"), (summary["fpdus"], "FPDUs")):
            self.assertIn(f"<b>{number}</b> {word}", text)
        starts = sum(e["type"] == "mpa" for e in events(capture))
        self.assertEqual(int(state["rows"]), summary["messages"] + starts)
        self.screenshot(path, "rping", size=(1400, 900))

    def test_every_synthetic_capture_and_fixture_opens(self):
        names = make_catalog(self.folder)
        some = [os.path.join(self.folder, name + ".pcap") for name in names if name.startswith(
            ("markers-both", "mid-stream-later", "hole", "snap-length-reads", "rfc-7306", "terminate-siw", "rejected", "not-iwarp", "same-ports"))]
        some += [os.path.join(FIXTURES, name) for name in ("siw-nvme.pcap", "ours-siw-terminate.pcap", "siw-read-70000.pcap")]
        for capture in some:
            with self.subTest(capture=os.path.basename(capture)):
                problems = sum(e["type"] == "problem" for e in events(capture))
                _, state = self.opened(self.page(capture), "#row=1")
                self.assertEqual(int(state["problems"]), problems)

    def test_problems_are_marked(self):
        make_catalog(self.folder)
        capture = os.path.join(self.folder, "hole.pcap")
        self.assertGreater(sum(e["type"] == "problem" for e in events(capture)), 0)
        path = self.page(capture)
        text, _ = self.opened(path)
        self.assertRegex(text, r'<td class="badText">TCP</td>')
        self.assertGreater(self.screenshot(path, "problems").get(COLOUR["Problem"], 0), 30)

    def test_a_phone_and_a_click(self):
        path = self.page(os.path.join(FIXTURES, "siw-write-5000.pcap"))
        text, _ = self.opened(path, "#row=4")
        self.assertIn("tagged offset", text)  # the fields of the row chosen
        counts = self.screenshot(path, "narrow", "#row=4", size=(500, 900))
        self.assertGreater(counts.get(COLOUR["Write"], 0), 200)


class Large(Page):
    def test_a_hundred_thousand_messages(self):
        capture = os.path.join(self.folder, "many.pcap")
        record(capture, 14400)
        path = self.page(capture)
        messages = int(re.search(r"(\d+) messages", self.summary)[1])
        self.assertGreater(messages, 100_000)
        self.assertLess(os.path.getsize(path), 60 * messages)
        _, state = self.opened(path, "#measure")
        self.assertEqual(int(state["rows"]), messages + 2)
        self.assertEqual(int(state["pairs"]), 14400)
        for name, view in (("many", ""), ("many-all", "#fit"), ("many-time", "#scale=time&fit")):
            counts = self.screenshot(path, name, view)
            for operation in ("Send", "Write", "ReadReq", "ReadResp"):
                self.assertGreater(counts.get(COLOUR[operation], 0), 60, (name, operation))


class Safety(Page):
    def test_the_page_needs_nothing_else(self):
        with open(self.page(os.path.join(FIXTURES, "siw-rping.pcap")), encoding="utf-8") as file:
            text = file.read()
        self.assertIsNone(re.search(r"<(link|img|iframe|script)[^>]*\b(src|href)=", text))
        self.assertIsNone(re.search(r"\b(fetch|import|XMLHttpRequest|WebSocket)\(|@import|url\(", text))
        self.assertIn("default-src 'none'", text)

    def test_names_that_look_like_markup(self):
        name = "</script><script>document.title='gone'</script><img src=x onerror=1>&\"'.pcap".replace("/", "\u2044")
        capture = os.path.join(self.folder, name)
        shutil.copy(os.path.join(FIXTURES, "siw-rping.pcap"), capture)
        with open(self.page(capture), encoding="utf-8") as file:
            self.assertNotIn("<img", file.read())
        for real in ("</script><img src=x>", "<!--<script>"):
            folder = os.path.join(self.folder, os.path.dirname(real) or ".")
            os.makedirs(folder, exist_ok=True)
            capture = os.path.join(self.folder, real)
            shutil.copy(os.path.join(FIXTURES, "siw-rping.pcap"), capture)
            text, _ = self.opened(self.page(capture))
            self.assertNotIn("<img", text)

    def test_no_half_page_under_the_final_name(self):
        path = os.path.join(self.folder, "page.html")
        cut = os.path.join(self.folder, "not-a-capture")
        with open(cut, "wb") as file:
            file.write(b"nothing of the kind")
        run(DUMP, "--html", path, cut, code=1)
        self.assertEqual(sorted(os.listdir(self.folder)), ["not-a-capture"])
        with open(path, "w", encoding="ascii") as file:
            file.write("before")
        run(DUMP, "--html", path, cut, code=1)
        with open(path, encoding="ascii") as file:
            self.assertEqual(file.read(), "before")

    def test_where_no_page_can_be(self):
        capture = os.path.join(FIXTURES, "siw-rping.pcap")
        for path, why in (("/dev/null", "plain file"), (self.folder, "directory"), (os.path.join(self.folder, "none", "x"), "No such file")):
            done = run(DUMP, "--html", path, capture, code=1)
            error = done.stderr.decode()
            self.assertEqual(error.count("\n"), 1, error)
            self.assertIn(path, error)
            self.assertIn(why, error)
        self.assertIn("--json", run(DUMP, "--html", os.path.join(self.folder, "x"), "--json", capture, code=2).stderr.decode())


if __name__ == "__main__":
    if CHROMIUM is None:
        print("skipped: there is no chromium")
        sys.exit(77)
    unittest.main()
