"""rping of rdmacm-utils, unmodified, against iwarp-ping: Send, Read and Write in each round, data checked by the client."""
import itertools

from cells import FROM_SIW, TO_SIW, Cell, Scenario, require

SIZES = (64, 3000, 60000)
ROUNDS = 10
PORT = 7174


class Ping(Scenario):
    name = "ping"
    title = "rping and iwarp-ping"
    about = (f"rping of rdmacm-utils 44 in the siw host, `iwarp-ping` outside; {ROUNDS} rounds of Send, RDMA Read, Send, Send, RDMA "
             "Write, Send. The client compares the data.")

    def cells(self):
        yield from self.regular_cells()
        yield Cell(self.name, "rping as server, revision 1", TO_SIW, "rping gives up", size=64)

    def regular_cells(self):
        return [Cell(self.name, "rping and iwarp-ping", direction, mtu=mtu, ip=ip, crc=crc, size=size)
                for mtu, direction, ip, crc, size in itertools.product((1500, 9000), (TO_SIW, FROM_SIW), (4, 6), ("on", "off"),
                                                                        SIZES)]

    def run(self, lab, cell):
        if "revision 1" in cell.case:
            return self.revision_1(lab, cell)
        return self.to_siw(lab, cell) if cell.direction == TO_SIW else self.from_siw(lab, cell)

    def to_siw(self, lab, cell):
        # A server of rping takes what its own -S says at most.
        server = lab.guest.start("rping", "-s", "-a", lab.siw_address(cell.ip), "-p", PORT, "-S", cell.size, "-C", ROUNDS)
        require(lab.guest.wait_listening(PORT), "rping does not listen")
        client = lab.run("iwarp-ping", "connect", lab.siw_target(cell.ip, PORT), "-C", ROUNDS, "-S", cell.size, "--crc",
                         cell.crc)
        require(client.code == 0, client)
        require(f"crc {cell.crc}" in client.out, f"another CRC setting in force: {client.out}")
        ended = server.wait(10)
        require(ended.code == 0, ended)

    def from_siw(self, lab, cell):
        # siw does not ask for a CRC by itself and follows our Reply.
        with lab.serving("iwarp-ping", "--crc", cell.crc, ip=cell.ip) as (server, port):
            client = lab.guest.run("rping", "-c", "-a", lab.host_address(cell.ip), "-p", port, "-C", ROUNDS, "-S", cell.size, "-V")
            require(client.code == 0, client)
            ended = server.stop()
            require(ended.code == 0 and ended.err == "", ended)

    def revision_1(self, lab, cell):
        # rping accepts without parameters: librdmacm then takes the ORD from the Request, which in revision 1 has none, so
        # that rping may post no Read. Programs that name their ORD have no such trouble.
        server = lab.guest.start("rping", "-s", "-a", lab.siw_address(4), "-p", PORT, "-C", ROUNDS)
        require(lab.guest.wait_listening(PORT), "rping does not listen")
        client = lab.run("iwarp-ping", "connect", lab.siw_target(4, PORT), "-C", ROUNDS, "--mpa-rev", 1)
        require(client.code == 1 and "closed the connection" in client.err, client)
        ended = server.wait(10)
        require("post send error" in ended.out + ended.err, ended)
