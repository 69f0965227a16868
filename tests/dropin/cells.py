"""Debian's programs of RDMA, as packaged, against themselves over iwarp-run. Which arguments, and what shows that all went well."""
import dataclasses


@dataclasses.dataclass
class Cell:
    package: str
    name: str                 # as it is shown
    client: list              # of two, or the only one
    server: list = None
    port: int = 0             # where the server listens, once it is ready
    code: int = 0             # of the client
    server_code: object = 0   # None: it serves until it is stopped
    expect: tuple = ()        # regular expressions that the client's output must have
    server_expect: tuple = ()
    silent: bool = True       # nothing on standard error but `allowed`
    allowed: tuple = ()       # lines that the program itself prints there
    note: str = ""            # for the page: why a refusal is right
    environment: dict = dataclasses.field(default_factory=dict)
    limit: int = 30           # seconds


A = "127.0.0.1"
RPING = (r"(client|server) DISCONNECT EVENT\.\.\.", r"wait for RDMA_READ_ADV state \d+")


def perftest(program, *options, sizes=""):
    """perftest checks no data; that all of it arrived is what its table says."""
    command = [program, "-R", *options]
    table = (r"#bytes +#iterations",)
    name = " ".join(command)
    return Cell("perftest", name, [*command, A], command, 18515, expect=table + ((sizes,) if sizes else ()), silent=False)


def fio(verb):
    name = f"fio ioengine=rdma verb={verb}, 32 MiB"
    return Cell("fio", name, ["fio", "--output-format=terse", f"@fio-{verb}"], ["fio", "--output-format=terse", "@fio-server"], 9999)


def rping(*options, address=A, name=""):
    return Cell("rdmacm-utils", name or "rping " + " ".join(options), ["rping", "-c", "-a", address, "-V", "-C", "10", *options],
                ["rping", "-s", "-a", address, "-C", "10", *options], 7174, allowed=RPING)


def ping_pong(provider, endpoint):
    command = ["fi_pingpong", "-p", provider, "-e", endpoint, "-c", "-I", "20"]
    return Cell("libfabric-bin", f"fi_pingpong -p {provider} -e {endpoint} -c", [*command, A], command, 47592, expect=(r"^1m .*",))


CELLS = [
    Cell("ibverbs-utils", "ibv_devices", ["ibv_devices"], expect=(r"iwarp0 +\t? *[0-9a-f]{16}",)),
    Cell("ibverbs-utils", "ibv_devinfo -v", ["ibv_devinfo", "-v"],
         expect=(r"iWARP \(1\)", r"PORT_ACTIVE", r"max_sge:\s+(1[6-9]|[2-9]\d)", r"max_qp_wr:\s+(1638[4-9]|[2-9]\d{4})")),
    rping("-S", "64"),
    rping("-S", "3000"),
    rping("-S", "60000"),
    rping(address="::1", name="rping over IPv6"),
    Cell("rdmacm-utils", "rping -s -P, three clients", ["sh", "-c", "for i in 1 2 3; do rping -c -a 127.0.0.1 -C 5 -V || exit 1; done"],
         ["rping", "-s", "-P", "-a", A], 7174, server_code=None, allowed=RPING),
    Cell("rdmacm-utils", "ucmatose", ["ucmatose", "-s", A, "-c", "4", "-C", "20", "-S", "1000"],
         ["ucmatose", "-c", "4", "-C", "20", "-S", "1000"], 7471, expect=(r"return status 0",)),
    Cell("rdmacm-utils", "udaddy", ["udaddy", "-s", A], code=255, expect=(r"unreliable datagrams", r"return status -1"), silent=False,
         note="refused: iWARP has no unreliable datagrams"),
    Cell("rdmacm-utils", "rdma_client, rdma_server", ["rdma_client", "-s", A], ["rdma_server"], 7471, expect=(r"end 0",), server_expect=(r"end 0",)),
    Cell("rdmacm-utils", "rdma_xclient, rdma_xserver", ["rdma_xclient", "-s", A], ["rdma_xserver"], 7471, expect=(r"end 0",), server_expect=(r"end 0",)),
    Cell("rdmacm-utils", "cmtime -c 50", ["cmtime", "-s", A, "-c", "50"], ["cmtime", "-c", "50"], 7471, server_code=None, expect=(r"disconnect",)),
    Cell("rdmacm-utils", "rstream", ["rstream", "-s", A, "-T", "v", "-S", "4096", "-C", "200"], ["rstream", "-T", "v", "-S", "4096", "-C", "200"], 7471),
    Cell("rdmacm-utils", "rstream, all sizes", ["rstream", "-s", A], ["rstream"], 7471, expect=(r"1m_bw",), limit=60),
    Cell("rdmacm-utils", "riostream", ["riostream", "-s", A, "-S", "64", "-C", "1", "-I", "50"], ["riostream", "-S", "64", "-C", "1", "-I", "50"], 7471,
         expect=(r"custom",)),
    Cell("rdmacm-utils", "rcopy", ["sh", "-c", "rcopy $0 127.0.0.1:$1 && cmp $0 $1", "@file", "@copy"], ["rcopy"], 7427, server_code=None,
         expect=(r"done",)),
    perftest("ib_send_bw", "-a", "-n", "50", sizes=r"^ 8388608 "),
    perftest("ib_write_bw", "-a", "-n", "50", sizes=r"^ 8388608 "),
    perftest("ib_read_bw", "-a", "-n", "50", sizes=r"^ 8388608 "),
    perftest("ib_send_lat", "-a", "-n", "10", sizes=r"^ 8388608 "),
    perftest("ib_write_lat", "-a", "-n", "10", sizes=r"^ 8388608 "),
    perftest("ib_read_lat", "-a", "-n", "10", sizes=r"^ 8388608 "),
    perftest("ib_send_bw", "-e", "-s", "65536", "-n", "500"),
    perftest("ib_read_bw", "-e", "-s", "65536", "-n", "500"),
    perftest("ib_send_lat", "-e", "-n", "200"),
    perftest("ib_read_lat", "-e", "-n", "200"),
    perftest("ib_write_bw", "-q", "8", "-s", "65536", "-n", "300"),
    perftest("ib_send_bw", "-b", "-s", "65536", "-n", "500"),
    perftest("ib_write_bw", "-b", "-s", "65536", "-n", "500"),
    perftest("ib_read_bw", "-b", "-s", "65536", "-n", "500"),
    perftest("ib_send_bw", "--use-srq", "-s", "4096", "-n", "500"),
    perftest("ib_send_lat", "-I", "64", "-s", "64", "-n", "200"),
    perftest("ib_write_lat", "-I", "64", "-s", "64", "-n", "200"),
    Cell("perftest", "ib_atomic_bw -R", ["ib_atomic_bw", "-R", A], ["ib_atomic_bw", "-R"], 18515, code=1, server_code=1, silent=False,
         note="refused: RFC 7306 is not there yet"),
    *[Cell("qperf", f"qperf {test} -cm1", ["qperf", A, "-cm1", "-t", "1", test], ["qperf"], 19765, server_code=None, expect=expect)
      for test, expect in (("rc_bw", (r"bw +=",)), ("rc_lat", (r"latency +=",)), ("rc_rdma_read_bw", (r"bw +=",)))],
    Cell("qperf", "qperf rc_rdma_write_bw -cm1", ["qperf", A, "-cm1", "-t", "1", "rc_rdma_write_bw"], ["qperf"], 19765, server_code=None, code=1,
         expect=(r"rdma write with immediate",), silent=False, note="refused: it writes with immediate data, and RFC 7306 is not there yet"),
    fio("write"),
    fio("read"),
    fio("send"),
    Cell("libfabric-bin", "fi_info -p verbs", ["fi_info", "-p", "verbs"], expect=(r"FI_PROTO_IWARP",)),
    ping_pong("verbs", "msg"),
    ping_pong("verbs;ofi_rxm", "rdm"),
    # It reads memory that it is writing at the same time; with CRC on that ends the connection now and then (docs/iwarp-run.md).
    Cell("dapl2-utils", "dtest, CRC off", ["dtest", "-P", "iwarp", "-h", "@address"], ["dtest", "-P", "iwarp"], 15828, expect=(r"PASSED",), silent=False,
         environment={"DAT_OVERRIDE": "@dat", "IWARP_CRC": "off"}),
    Cell("python3-pyverbs", "device, memory region, queues, queue pair", ["/usr/bin/python3", "@pyverbs"], expect=(r"iwarp0 .*hello",)),
]
