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
        return [Cell(self.name, "rping and iwarp-ping", direction, mtu=mtu, ip=ip, crc=crc, size=size)
                for mtu, direction, ip, crc, size in itertools.product((1500, 9000), (TO_SIW, FROM_SIW), (4, 6), ("on", "off"),
                                                                        SIZES)]

    def run(self, lab, cell):
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
