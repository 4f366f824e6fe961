"""Two queue pairs of two simulated devices, connected."""

import pyverbs.enums as e
import pytest
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr


class End:
    def __init__(self, name):
        self.context = Context(name=name)
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 16)
        self.mr = MR(self.pd, 4096, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE)
        init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=QPCap(16, 16, 1, 1))
        self.qp = QP(self.pd, init)

    def connect(self, other):
        route = GlobalRoute(dgid=other.context.query_gid(1, 0), sgid_index=0)
        attr = QPAttr()
        attr.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE
        attr.dest_qp_num = other.qp.qp_num
        attr.path_mtu = e.IBV_MTU_1024
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
        attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 14, 7, 7
        attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        self.qp.to_rts(attr)


@pytest.fixture
def ends():
    ends = End("sim0"), End("sim1")
    for end, other in (ends, ends[::-1]):
        end.connect(other)
    yield ends
    for end in ends:
        for of in (end.qp, end.mr, end.cq, end.pd, end.context):
            of.close()
