"""MPA start-up between the twin probes: private data, read depths, revision 1, peer-to-peer model, markers, rejection."""
import itertools

from cells import FROM_SIW, TO_SIW, Cell, Scenario, require
from lab import siw_facts
from probe import Pair

BOTH = (TO_SIW, FROM_SIW)

# What every connection that works has to carry: Sends both ways, a Write, Reads; data checked on both sides.
CONNECTS = ["offer", "take", "write:5000", "send:1", "recv:2", "reads:2:5000", "send:3", "disconnect"]
LISTENS = ["take", "offer", "recv:1", "check:5000", "send:2", "recv:3", "hold"]


def octets(count, first=0x40):
    return bytes((first + i) & 0xFF for i in range(count)).hex()


class StartUp(Scenario):
    """Cells with a method of this class each: `tags` has its name and arguments."""

    def run(self, lab, cell):
        return getattr(self, cell.parameter("method"))(lab, cell)

    def cell(self, case, direction, method, expected="works", ip=4, crc="on", size=None, **parameters):
        return Cell(self.name, case, direction, expected, ip=ip, crc=crc, size=size,
                    tags=(("method", method), *parameters.items()))


class PrivateData(StartUp):
    name = "private data"
    title = "Private data"
    about = "Octets of private data in the Request and in the Reply, compared on both sides; then Sends, a Write and Reads."

    def cells(self):
        for ip, direction, size in itertools.product((4, 6), BOTH, (0, 1, 251, 252)):
            if size < siw_facts.PRIVATE_DATA_SENT + 1:
                yield self.cell("in Request and Reply", direction, "both_ways", ip=ip, size=size)
        yield self.cell("ours in the Request", TO_SIW, "both_ways", size=252, reply=0)
        yield self.cell("ours in the Reply", FROM_SIW, "both_ways", size=252, request=0)
        yield self.cell("ours in the Request", TO_SIW, "both_ways", "works, with revision 1", size=253, reply=0, revision=1)
        yield self.cell("ours in the Request", TO_SIW, "both_ways", "works, with revision 1", size=255, reply=0, revision=1)
        for size in (257, 508):
            yield self.cell("ours in the Request", TO_SIW, "siw_closes", "siw closes, connect_error", size=size)
        yield self.cell("siw's in the Request", FROM_SIW, "siw_garbles", "refused by us, siw: rejected", size=252)
        yield self.cell("siw's in the Reply", TO_SIW, "siw_garbles", "connect_error: bad private data", size=252)
        yield self.cell("ours in the Reply", FROM_SIW, "siw_panics", "siw's kernel panics, ours goes on", size=300)

    def both_ways(self, lab, cell):
        request = octets(cell.parameter("request", cell.size))
        reply = octets(cell.parameter("reply", cell.size), 0x80)
        pair = Pair(lab, cell, ["--data", request], ["--data", reply], CONNECTS, LISTENS)
        pair.require_success()
        require(pair.responder.require_event("request")["data"] == request, f"another Request: {pair.responder.said()}")
        require(pair.initiator.require_event("established")["data"] == reply, f"another Reply: {pair.initiator.said()}")
        revision = pair.ours.require_event("established")["revision"]
        require(revision == cell.parameter("revision", 2), f"MPA revision {revision}")

    def siw_closes(self, lab, cell):
        pair = Pair(lab, cell, ["--data", octets(cell.size)], [], CONNECTS, LISTENS)
        require(pair.ours.wait().code == 3, pair.ours.said())
        return pair.ours.require_event("connect error")["reason"]

    def siw_garbles(self, lab, cell):
        # Its length of 8 bits wraps (siw_send_mpareqrep): the frame says 0 octets and has 256.
        data = ["--data", octets(cell.size)]
        pair = Pair(lab, cell, *((data, []) if cell.direction == FROM_SIW else ([], data)), CONNECTS, LISTENS)
        require(pair.initiator.wait().code == 3, pair.initiator.said())
        if pair.initiator is pair.ours:
            reason = pair.ours.require_event("connect error")["reason"]
            require("private data" in reason, reason)
        else:
            require(pair.siw.event("RDMA_CM_EVENT_REJECTED"), pair.siw.said())
            require(not pair.ours.event("request"), "a malformed Request came through")

    def siw_panics(self, lab, cell):
        lab.expect_panic()
        pair = Pair(lab, cell, [], ["--data", octets(cell.size)], ["hold"], ["exit"])
        require(pair.ours.wait().code == 0, pair.ours.said())
        pair.siw.wait(3)
        return "" if lab.guest.alive() else "the kernel panicked as expected and was booted anew"


class ReadDepths(StartUp):
    name = "read depths"
    title = "IRD and ORD"
    about = ("Both sides ask for the same IRD and ORD; then each side posts twice as many Reads as may be outstanding and compares "
             "what they bring.")

    def cells(self):
        for direction, asked, answered in itertools.product(BOTH, (1, 16, 128), (1, 16, 128)):
            yield self.cell(f"Request {asked}/{asked}, answer {answered}/{answered}", direction, "negotiate", asked=asked,
                            answered=answered)
        for direction in BOTH:
            yield self.cell("Request 0/0, answer 0/0", direction, "without_reads", "works, without Reads")
        yield self.cell("Request 1/16, answer 16/1", TO_SIW, "one_way", asked=(1, 16), answered=(16, 1))
        yield self.cell("Request 16/1, answer 1/16", TO_SIW, "one_way", asked=(16, 1), answered=(1, 16))
        yield self.cell("Request 1/16, answer 16/1", FROM_SIW, "one_way", asked=(1, 16), answered=(16, 1))
        yield self.cell("Request 16/1, answer 1/16", FROM_SIW, "one_way", asked=(16, 1), answered=(1, 16))

    def negotiate(self, lab, cell):
        return self.reads(lab, cell, [cell.parameter("asked")] * 2, [cell.parameter("answered")] * 2)

    def one_way(self, lab, cell):
        return self.reads(lab, cell, cell.parameter("asked"), cell.parameter("answered"))

    def reads(self, lab, cell, asked, answered):
        def depths(both):
            return ["--ird", str(both[0]), "--ord", str(both[1])]

        def count(ord_):
            return min(2 * ord_, 200)  # the send queues hold 256

        pair = Pair(lab, cell, depths(asked), depths(answered),
                    ["offer", "take", f"reads:{count(asked[1])}:500", "send:1", "recv:2", "disconnect"],
                    ["take", "offer", "recv:1", f"reads:{count(answered[1])}:500", "send:2", "hold"])
        pair.require_success()
        up = pair.ours.require_event("established")
        ours = asked if cell.direction == TO_SIW else answered
        # RFC 6581 s9.1: nobody has more Reads outstanding than it asked for, or than the other side holds.
        require(up["ord"] <= min(ours[1], up["peer_ird"]), f"ORD {up['ord']} in force: {up}")
        require(up["ird"] >= 1, f"IRD {up['ird']} in force: {up}")
        return f"ours in force: IRD {up['ird']}, ORD {up['ord']}; siw says IRD {up['peer_ird']}, ORD {up['peer_ord']}"

    def without_reads(self, lab, cell):
        none = ["--ird", "0", "--ord", "0"]
        pair = Pair(lab, cell, none, none, ["offer", "take", "write:5000", "send:1", "recv:2", "disconnect"],
                    ["take", "offer", "recv:1", "check:5000", "send:2", "hold"])
        pair.require_success()


class Modes(StartUp):
    name = "start-up"
    title = "Revision 1, peer-to-peer, who sends first, markers"
    about = "One connection each, with Sends, a Write and Reads where nothing else is said."

    def cells(self):
        for direction, crc in itertools.product(BOTH, ("on", "off")):
            yield self.cell("revision 2", direction, "plain", crc=crc)
        for crc in ("on", "off"):
            yield self.cell("revision 1", TO_SIW, "revision_1", "works, but for siw's Reads" , crc=crc)
        for ip, crc in itertools.product((4, 6), ("on", "off")):
            yield self.cell("peer-to-peer, siw sends first", TO_SIW, "peer_to_peer", ip=ip, crc=crc)
        for ip in (4, 6):
            yield self.cell("siw sends first", TO_SIW, "siw_first", ip=ip)
            yield self.cell("we post the first Send", FROM_SIW, "ours_first", "waits for siw's first FPDU", ip=ip)
            yield self.cell("markers asked for", TO_SIW, "markers_refused", "rejected: markers refused", ip=ip)
            yield self.cell("markers preferred", TO_SIW, "markers_preferred", "works, without markers", ip=ip)
            yield self.cell("markers asked for", FROM_SIW, "markers_from_siw", "siw gives up, ours: disconnected", ip=ip)

    def plain(self, lab, cell):
        pair = Pair(lab, cell, [], [], CONNECTS, LISTENS)
        pair.require_success()
        require(pair.ours.require_event("established")["crc"] == (cell.crc == "on"), "another CRC setting in force")

    def revision_1(self, lab, cell):
        pair = Pair(lab, cell, [], [], CONNECTS, LISTENS, ours=["--revision", "1"])
        pair.require_success()
        require(pair.ours.require_event("established")["revision"] == 1, "another revision")

    def peer_to_peer(self, lab, cell):
        # The responder's first FPDU needs no word from us. siw's kernel does not survive many of these: about 30 in a row
        # have brought it down (BUG in cm_work_handler).
        pair = Pair(lab, cell, [], [], ["recv:2", "send:1", "disconnect"], ["send:2", "recv:1", "hold"], ours=["--p2p", "on"])
        pair.require_success()

    def siw_first(self, lab, cell):
        # It does not wait for our first FPDU (RFC 5044 s7.1.2 rule 4 says it must); we tolerate that.
        pair = Pair(lab, cell, [], [], ["recv:2", "send:1", "disconnect"], ["send:2", "recv:1", "hold"])
        pair.require_success()

    def ours_first(self, lab, cell):
        pair = Pair(lab, cell, [], [], ["send:1", "recv:2", "disconnect"], ["send:2", "recv:1", "hold"])
        pair.require_success()

    def markers_refused(self, lab, cell):
        pair = Pair(lab, cell, [], [], CONNECTS, LISTENS, ours=["--markers", "on"])
        require(pair.ours.wait().code == 3, pair.ours.said())
        reason = pair.ours.require_event("rejected")["reason"]
        require("markers" in reason, reason)

    def markers_preferred(self, lab, cell):
        pair = Pair(lab, cell, [], [], CONNECTS, LISTENS, ours=["--markers", "prefer"])
        pair.require_success()
        require(not pair.ours.require_event("established")["markers"], "markers in force")

    def markers_from_siw(self, lab, cell):
        pair = Pair(lab, cell, [], [], ["hold"], ["hold"], ours=["--markers", "on"])
        require(pair.siw.wait().code == 3 and pair.siw.event("RDMA_CM_EVENT_REJECTED"), pair.siw.said())
        require(pair.ours.wait().code == 0 and pair.ours.event("disconnected"), pair.ours.said())


class Reject(StartUp):
    name = "reject"
    title = "Rejection by the program"
    about = "The responder's program says no; its private data arrives."

    def cells(self):
        for ip, direction, size in itertools.product((4, 6), BOTH, (0, 1, 251)):
            yield self.cell("reject", direction, "reject", "rejected, with its data", ip=ip, size=size)
        for direction in BOTH:
            yield self.cell("reject, revision 2, CRC off", direction, "reject", "rejected, with its data", crc="off", size=9)
        yield self.cell("reject, revision 1", TO_SIW, "reject", "rejected, with its data", size=9, revision=1)

    def reject(self, lab, cell):
        data = octets(cell.size)
        ours = ["--revision", "1"] if cell.parameter("revision") == 1 else []
        pair = Pair(lab, cell, [], ["--answer", "reject", "--data", data], CONNECTS, LISTENS, ours=ours)
        require(pair.initiator.wait().code == 3, pair.initiator.said())
        event = pair.initiator.require_event("rejected" if pair.initiator is pair.ours else "RDMA_CM_EVENT_REJECTED")
        require(event["data"] == data, f"other data: {pair.initiator.said()}")
        pair.responder.require_success()


ALL = [PrivateData(), ReadDepths(), Modes(), Reject()]
