"""A program of Python that uses libibverbs, by pyverbs: it creates a queue pair on the first device."""

import pyverbs.enums as e
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.pd import PD
from pyverbs.qp import QP, QPCap, QPInitAttr

with Context(name=get_device_list()[0].name.decode()) as context:
    with PD(context) as pd, CQ(context, 16) as cq:
        with QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap())) as qp:
            assert qp.qp_num > 1
