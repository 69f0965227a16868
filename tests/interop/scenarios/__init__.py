"""Every scenario, in the order of running and of the tables in docs/interop.md."""
from . import closing, matrix, ping, repeats, startup


def all_of(build):
    """`build`: the build folder; the matrix is asked for its cells there."""
    return [ping.Ping(), *startup.ALL, *closing.ALL, *repeats.ALL, matrix.Matrix(build)]
