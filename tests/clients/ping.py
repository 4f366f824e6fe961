"""The same from Python: Debian's pyverbs, and the libraries of vendors that it brings along."""

import ctypes

import pyverbs.enums as e
import pyverbs.providers.efa.efadv  # its library wants private symbols
import pyverbs.providers.mlx5.mlx5dv  # as above
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

LENGTH = 1024


class End:
    """A queue pair of a device, and what it needs."""

    def __init__(self, name):
        self.context = Context(name=name)
        self.pd = PD(self.context)
        self.channel = CompChannel(self.context)
        self.cq = CQ(self.context, 16, None, self.channel, 0)
        self.mr = MR(self.pd, LENGTH, e.IBV_ACCESS_LOCAL_WRITE)
        init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=QPCap())
        self.qp = QP(self.pd, init)
        self.sge = SGE(self.mr.buf, LENGTH, self.mr.lkey)

    def connect(self, peer):
        route = GlobalRoute(dgid=peer.context.query_gid(1, 0), sgid_index=0)
        attr = QPAttr(port_num=1)
        attr.dest_qp_num = peer.qp.qp_num
        attr.path_mtu = e.IBV_MTU_1024
        attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
        attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer = 14, 7, 7, 12
        self.qp.to_rts(attr)

    def complete(self):
        while True:
            count, wcs = self.cq.poll()
            if count:
                assert wcs[0].status == e.IBV_WC_SUCCESS, wcs[0]
                return wcs[0]


names = [device.name.decode() for device in get_device_list()]
a, b = End(names[0]), End(names[1])
a.connect(b)
b.connect(a)
a.mr.write("ping" * 4, 16)
b.cq.req_notify()
b.qp.post_recv(RecvWR(wr_id=1, num_sge=1, sg=[b.sge]))
a.qp.post_send(SendWR(wr_id=2, num_sge=1, sg=[a.sge], send_flags=e.IBV_SEND_SIGNALED))
b.channel.get_cq_event(b.cq)
b.cq.ack_events(1)
assert b.complete().byte_len == LENGTH and a.complete().wr_id == 2
assert b.mr.read(16, 0) == b"ping" * 4
try:
    MR(b.pd, LENGTH, e.IBV_ACCESS_REMOTE_WRITE)
    raise AssertionError("remote writes without local ones")
except PyverbsRDMAError as error:
    assert "Invalid argument" in str(error), error

# Programs that look libibverbs up by themselves find the same one, by version too.
library = ctypes.CDLL("libibverbs.so")
find = ctypes.CDLL(None).dlvsym
find.restype = ctypes.c_void_p
find.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
for name, version in [
    ("ibv_reg_mr", "1.1"),
    ("ibv_create_comp_channel", "1.0"),
    ("ibv_reg_mr_iova2", "1.8"),
    ("ibv_query_gid_type", "PRIVATE_34"),
    ("ibv_query_gid_type", "PRIVATE_59"),
    ("verbs_register_driver_57", "PRIVATE_57"),
]:
    assert find(library._handle, name.encode(), f"IBVERBS_{version}".encode()), name
library.ibv_get_device_index.argtypes = [ctypes.c_void_p]
devices = library.ibv_get_device_list
devices.restype = ctypes.POINTER(ctypes.c_void_p)
assert library.ibv_get_device_index(devices(None)[1]) == 1
