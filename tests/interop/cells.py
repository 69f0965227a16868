"""Cells: one statement each about our stack and siw together, and what a run made of them. Needs no lab."""
import dataclasses

TO_SIW = "ours → siw"  # we are the MPA Initiator
FROM_SIW = "siw → ours"


@dataclasses.dataclass(frozen=True)
class Cell:
    scenario: str
    case: str  # what is done, in a few words; with the other fields unique in its scenario
    direction: str = TO_SIW  # who connects to whom
    expected: str = "works"
    mtu: int = 1500
    ip: int = 4
    crc: str = "on"
    size: int | None = None  # octets
    variant: str = ""  # what else makes it another cell
    tags: tuple = dataclasses.field(default=(), compare=False)  # for the scenario alone: parameters of the case

    @property
    def name(self):
        words = [self.scenario, self.case, self.direction, f"mtu {self.mtu}", f"IPv{self.ip}", f"crc {self.crc}"]
        if self.size is not None:
            words.append(f"{self.size} octets")
        if self.variant:
            words.append(self.variant)
        return ", ".join(words)

    def parameter(self, name, otherwise=None):
        return dict(self.tags).get(name, otherwise)


@dataclasses.dataclass
class Outcome:
    cell: Cell
    result: str  # "passed", "failed", "skipped"
    note: str = ""
    seconds: float = 0.0

    def record(self):
        fields = dataclasses.asdict(self.cell)
        del fields["tags"]
        return {**fields, "result": self.result, "note": self.note}


class Mismatch(Exception):
    """The cell did not come out as it must. The text says what was seen."""


def require(condition, what):
    if not condition:
        raise Mismatch(str(what))


class Scenario:
    """Cells that belong together. `name` is that of its cells; `title` and `about` head its table in docs/interop.md."""

    name = ""
    title = ""
    about = ""
    batch = False  # run_batch(lab, cells, record) runs them all

    def cells(self):
        """All of them, in the order of running; the same in every run."""
        raise NotImplementedError

    def run(self, lab, cell):
        """Returns a note, may be empty; raises Mismatch. The siw host is up, with the cell's MTU."""
        raise NotImplementedError

    def finish(self, lab):
        """After the last cell."""


def sides(initiator_is_ours, ours, siw):
    """(initiator, responder) of two things."""
    return (ours, siw) if initiator_is_ours else (siw, ours)
