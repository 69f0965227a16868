"""Every scenario, in the order of running and of the tables in docs/interop.md."""
from . import closing, ping, repeats, startup

ALL = [ping.Ping(), *startup.ALL, *closing.ALL, *repeats.ALL]
