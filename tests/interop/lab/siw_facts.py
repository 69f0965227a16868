"""What Linux siw does that a scenario has to know, in one place each. Read from Linux 6.1, drivers/infiniband/sw/siw, and seen."""

# Octets of private data that siw itself can send with revision 2: the enhanced data makes 4 more, and its length is a
# variable of 8 bits (siw_cm.c, siw_send_mpareqrep). 252 makes a frame that says 0.
PRIVATE_DATA_SENT = 251
# Octets of private data that siw takes, enhanced data included (RDMA_MAX_PRIVATE_DATA). A longer Request makes it close
# without a Reply; a longer Reply makes its kernel panic (siw_recv_mpa_rr, then siw_proc_mpareply).
PRIVATE_DATA_TAKEN = 256
