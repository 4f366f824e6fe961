"""A test that is right, and one that writes where its peer has no memory."""

import pyverbs.enums as e
from pyverbs.wr import SGE, SendWR


def write(ends, address):
    here, there = ends
    wr = SendWR(num_sge=1, sg=[SGE(here.mr.buf, 8, here.mr.lkey)], opcode=e.IBV_WR_RDMA_WRITE)
    wr.set_wr_rdma(there.mr.rkey, address)
    here.qp.post_send(wr)
    while True:
        count, completions = here.cq.poll()
        if count:
            return completions[0].status


def test_writes_into_the_region(ends):
    assert write(ends, ends[1].mr.buf) == e.IBV_WC_SUCCESS


def test_does_not_look_at_the_status(ends):
    write(ends, ends[1].mr.buf + 4096)
