"""The end of a connection in each state: before it stands, idle, and in mid-transfer; graceful, by abort, by the end of a program,
and by the end of the whole siw host."""
import itertools

from cells import FROM_SIW, TO_SIW, Cell, Scenario, require
from probe import Pair
from scenarios.startup import StartUp

BOTH = (TO_SIW, FROM_SIW)
WAYS = ("disconnect", "abort", "exit")


class Idle(StartUp):
    name = "close"
    title = "Closing an idle connection"
    about = ("`disconnect`: rdma_disconnect and its like; `abort`: the queue pair goes to Error; `exit`: the program ends at once. The "
             "other side must learn of it, once.")

    def cells(self):
        for direction, ours, way, when in itertools.product(BOTH, (True, False), WAYS, ("at once", "after data")):
            yield self.cell(f"{'we' if ours else 'siw'} {way}, {when}", direction, "close", "the other side: disconnected",
                            ours=ours, way=way, data=when == "after data")

    def close(self, lab, cell):
        connects, listens = [], []
        initiator_closes = cell.parameter("ours") == (cell.direction == TO_SIW)
        if cell.parameter("data"):
            # siw completes a Send that has arrived already with an error when the connection ends that moment.
            connects, listens = ["send:100", "recv:200"], ["recv:100", "last:200"]
            if not initiator_closes:
                connects, listens = ["last:100", "recv:200"], ["recv:100", "send:200"]
        closing, held = [cell.parameter("way")], ["hold"]
        connects += closing if initiator_closes else held
        listens += held if initiator_closes else closing
        pair = Pair(lab, cell, [], [], connects, listens)
        pair.responder.require_success()
        if not initiator_closes and pair.initiator is pair.siw and pair.siw.wait().code == 3:
            # Our Reply and the end of the connection came in one segment: siw looks at the end alone (siw_cm_llp_data_ready).
            require(pair.siw.event("RDMA_CM_EVENT_REJECTED") and not cell.parameter("data"), pair.siw.said())
            return "siw: rejected, it saw the end before the Reply"
        pair.initiator.require_success()


class MidTransfer(StartUp):
    name = "close in mid-transfer"
    title = "Closing in mid-transfer"
    about = ("One side keeps four Writes (stream) or Reads (pull) of 1 MiB outstanding, the other side ends the connection, or its "
             "program is killed. The active side's requests complete with an error, and both programs end.")

    def cells(self):
        for direction, ours, kind, way in itertools.product(BOTH, (True, False), ("stream", "pull"), WAYS):
            yield self.cell(f"{'ours' if ours else 'siw'}: {kind}, the other side: {way}", direction, "ended_by_other",
                            "completions with an error", ours=ours, kind=kind, way=way)
        for direction, ours, kind in itertools.product(BOTH, (True, False), ("stream", "pull")):
            yield self.cell(f"{'ours' if ours else 'siw'}: {kind}, and is killed", direction, "killed",
                            "the other side: disconnected", ours=ours, kind=kind)
        for kind in ("stream", "pull"):
            yield self.cell(f"siw host killed while we {kind}", TO_SIW, "host_killed", "our program gives up, as told", kind=kind)

    def ended_by_other(self, lab, cell):
        active_is_initiator = cell.parameter("ours") == (cell.direction == TO_SIW)
        kind, way = cell.parameter("kind"), cell.parameter("way")
        if active_is_initiator:
            connects, listens = ["offer", "take", "send:1", kind], ["take", "offer", "recv:1", way]
        else:
            connects, listens = ["offer", "take", "recv:2", way], ["take", "offer", "send:2", kind]
        pair = Pair(lab, cell, [], [], connects, listens)
        pair.require_success()
        active = pair.ours if cell.parameter("ours") else pair.siw
        ended = [line for line in active.lines() if line.get("step") == kind and "count" in line]
        require(ended and ended[0]["status"] != "success", active.said())
        return f"{active.name}: {ended[0]['status']}"

    def killed(self, lab, cell):
        active_is_initiator = cell.parameter("ours") == (cell.direction == TO_SIW)
        kind = cell.parameter("kind")
        active_steps, held = [kind], ["hold"]
        connects, listens = (active_steps, held) if active_is_initiator else (held, active_steps)
        pair = Pair(lab, cell, [], [], ["offer", "take", *connects], ["take", "offer", *listens])
        active, other = (pair.ours, pair.siw) if cell.parameter("ours") else (pair.siw, pair.ours)
        active.wait_for(lambda line: line.get("status") == "begun")
        active.program.kill()
        other.require_success()

    def host_killed(self, lab, cell):
        lab.expect_panic()
        pair = Pair(lab, cell, ["--limit", "2"], [], ["offer", "take", "send:1", cell.parameter("kind")],
                    ["take", "offer", "recv:1", "hold"])
        pair.ours.wait_for(lambda line: line.get("status") == "begun")
        lab.guest.kill()
        # No FIN comes, and TCP goes on for minutes; the program's own limit ends it.
        done = pair.ours.wait(20)
        require(done.code == 1 and "no completion" in done.out, pair.ours.said())


class Pending(StartUp):
    name = "close in start-up"
    title = "Ending before the connection stands"
    about = "The initiator's or the responder's program ends while the Request waits for its answer, or nobody listens."

    def cells(self):
        for direction in BOTH:
            yield self.cell("initiator killed, Request pending", direction, "initiator_killed", "the answer comes too late")
            yield self.cell("responder ends, Request pending", direction, "responder_gone", "initiator: an event says so")
            yield self.cell("nobody listens", direction, "nobody", "initiator: an event says so")

    def initiator_killed(self, lab, cell):
        pair = Pair(lab, cell, [], ["--answer", "ignore", "--limit", "2"], ["hold"], ["hold"])
        pair.responder.wait_for(lambda line: line.get("event") == "request")
        pair.initiator.program.kill()
        pair.responder.wait(20)
        require(pair.responder.done.code is not None, pair.responder.said())
        return pair.responder.said()

    def responder_gone(self, lab, cell):
        pair = Pair(lab, cell, [], ["--answer", "gone"], ["hold"], ["hold"])
        require(pair.initiator.wait().code == 3, pair.initiator.said())
        return pair.initiator.said()

    def nobody(self, lab, cell):
        pair = Pair(lab, cell, [], ["--answer", "nobody"], ["hold"], [])
        done = pair.initiator.wait()
        # siw tells rdma_connect() at once.
        require(done.code == (3 if pair.initiator is pair.ours else 1) and "onnection refused" in done.out, pair.initiator.said())


ALL = [Idle(), MidTransfer(), Pending()]
