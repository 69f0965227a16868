"""Every scenario, in the order of running and of the tables in docs/interop.md."""
from . import ping

ALL = [ping.Ping()]
